// Words of the view Steps: a classifier, tagger or regressor while it reads.
export const words = {
  en: {
    says: "After step {t} of {n}, the model gives {name} a probability of {share}.{truth}", saysEach: "At step {t} of {n}, the model gives {name} a probability of {share}.{truth}", saysNumber: "After step {t} of {n}, the model predicts {values}.{truth}",
    right: " That is right.", truth: " The truth is {truth}.", both: "The network reads in both directions: each prediction of a step knows the whole sequence.",
    sequence: "Sequence", item: "{i}: {answer}", itemTruth: "{i}: {answer}, truth {truth}", facts: "{kind} · {cell} · {hidden} units · {parameters} parameters · {n} sequences",
    input: "What is read", inputLabel: "The sequence, step by step", channel: "input {i} at step {t}: {value}",
    now: "The prediction now", by: "The prediction after every step", byLabel: "Prediction by the number of steps read", share: "probability", value: "prediction", steps: "steps read",
    matrix: "All classes after every step", matrixLabel: "Probability of every class by the number of steps read", cell: "{name} after step {t}: {share}", slider: "The cursor through time", sliderText: "step {t} of {n}",
    units: "Units through time", unitsLabel: "States of all units over all steps", unit: "h{unit}({t}) = {value}", keyTruth: "truth", keyAnswer: "{name}, the answer", keySequence: "another sequence",
    step: "step", token: "token", table: "The prediction after every step", tableInput: "The sequence", tableUnits: "States of all units at each step", halves: "Units from h{hidden} on read from the end: their values know the later steps.", note: "The prediction after t steps is what the model answers if the sequence ends there.",
  },
  zh: {
    says: "读完第 {t} 步（共 {n} 步），模型给 {name} 的概率是 {share}。{truth}", saysEach: "在第 {t} 步（共 {n} 步），模型给 {name} 的概率是 {share}。{truth}", saysNumber: "读完第 {t} 步（共 {n} 步），模型预测 {values}。{truth}",
    right: "这是对的。", truth: "真实值是 {truth}。", both: "网络双向读取：每一步的预测都知道整个序列。",
    sequence: "序列", item: "{i}：{answer}", itemTruth: "{i}：{answer}，真实值 {truth}", facts: "{kind} · {cell} · {hidden} 个单元 · {parameters} 个参数 · {n} 个序列",
    input: "读到的内容", inputLabel: "逐步读取的序列", channel: "第 {t} 步的输入 {i}：{value}",
    now: "当前的预测", by: "每一步之后的预测", byLabel: "预测随读取步数的变化", share: "概率", value: "预测值", steps: "已读步数",
    matrix: "每一步之后的所有类别", matrixLabel: "各类别的概率随读取步数的变化", cell: "第 {t} 步之后的 {name}：{share}", slider: "时间光标", sliderText: "第 {t} 步，共 {n} 步",
    units: "各单元随时间的变化", unitsLabel: "所有单元在各步的状态", unit: "h{unit}({t}) = {value}", keyTruth: "真实值", keyAnswer: "{name}，最后的回答", keySequence: "换一个序列",
    step: "步", token: "词元", table: "每一步之后的预测", tableInput: "序列", tableUnits: "各步所有单元的状态", halves: "从 h{hidden} 起的单元从末尾往回读：它们的值知道后面的步。", note: "t 步之后的预测，就是序列在此结束时模型的回答。",
  },
};
