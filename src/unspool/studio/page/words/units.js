// Words of the view Units.
export const words = {
  en: {
    says: "After reading {now} at step {t}, unit {name} is {value}. In this text it tells most about {property}: {share} of it. {cost}", saysNothing: "After reading {now} at step {t}, unit {name} is {value}. In this text it tells nothing about letters, words or lines. {cost}",
    saysCost: "Switched off, a token costs {after} instead of {before} nats.", saysGate: "A gate; only states can be switched off.",
    text: "The text, coloured by {name}", textNote: "A bar over a letter is plus, a bar under it is minus; full height is ±{most}. Click a letter to move the cursor.", tableText: "{name} at each step",
    choose: "Which unit", list: "Units by what they tell", group: "State or gate", number: "Number of the unit", tableUnits: "Units, most informative first", column: "unit",
    along: "{name} along the text", alongLabel: "Value of the unit at each step", tells: "What it tells", tellsNote: "Normalised mutual information of its value with a property of the text, above chance: 100 % means the value fixes the property.", tableTells: "What the unit tells",
    strongest: "Strongest stretches", go: "{text}: {value} at step {t}", tableStretches: "Where the unit is strongest", from: "from", to: "to", at: "at step",
    off: "Switched off", offNote: "With {name} at 0 after every step, the text costs {nats} nats per token instead of {before}: {cost}. Above the line: this token became more surprising.", offGate: "Only a state (h or s) can be switched off, not a gate.", offLabel: "Change of surprise at each step without the unit", change: "nats more",
    doOff: "Switch it off everywhere", doOn: "Switch it on again", tableOff: "Surprise with the unit and without it", step: "step", token: "token", value: "value", property: "property", share: "tells", chance: "chance level", before: "with it", without: "without it", text_: "text", keyUnit: "the unit above or below in the list", keyOff: "switch the unit off or on",
    p0: "a blank or line end", p1: "a capital letter", p2: "a vowel", p3: "punctuation", p4: "in a line's first word", p5: "the word ends here", p6: "the line ends here", p7: "position in the line", p8: "position in the word", p9: "position in the sentence", none: "nothing",
  },
  zh: {
    says: "在第 {t} 步读到 {now} 之后，单元 {name} 为 {value}。在这段文本中，它编码最多的是“{property}”：{share}。{cost}", saysNothing: "在第 {t} 步读到 {now} 之后，单元 {name} 为 {value}。在这段文本中，它不编码字母、词或行的性质。{cost}",
    saysCost: "关闭它，每个词元 {after} 奈特，原来 {before}。", saysGate: "这是门；只有状态可以关闭。",
    text: "按 {name} 着色的文本", textNote: "字母上方的条为正，下方的条为负；满高为 ±{most}。点击字母可移动光标。", tableText: "各步的 {name}",
    choose: "选择单元", list: "按编码的性质排列的单元", group: "状态或门", number: "单元编号", tableUnits: "单元，信息最多的在前", column: "单元",
    along: "{name} 沿文本的变化", alongLabel: "单元在各步的值", tells: "它编码什么", tellsNote: "单元的值与文本性质的归一化互信息，已减去随机水平：100 % 表示由值即可确定该性质。", tableTells: "该单元编码的性质",
    strongest: "激活最强的片段", go: "{text}：第 {t} 步为 {value}", tableStretches: "该单元激活最强之处", from: "起", to: "止", at: "步",
    off: "关闭之后", offNote: "每一步之后都把 {name} 设为 0，每个词元 {nats} 奈特，原来 {before}：{cost}。线以上：该词元的惊异度变大。", offGate: "只有状态（h 或 s）可以关闭，门不可以。", offLabel: "关闭该单元后各步惊异度的变化", change: "增加的奈特",
    doOff: "在每一步关闭", doOn: "重新打开", tableOff: "关闭前后的惊异度", step: "步", token: "词元", value: "值", property: "性质", share: "互信息", chance: "随机水平", before: "关闭前", without: "关闭后", text_: "文本", keyUnit: "列表中的上一个或下一个单元", keyOff: "关闭或打开该单元",
    p0: "空白或行尾", p1: "大写字母", p2: "元音字母", p3: "标点", p4: "在一行的第一个词里", p5: "词在此结束", p6: "行在此结束", p7: "在行内的位置", p8: "在词内的位置", p9: "在句内的位置", none: "无",
  },
};
