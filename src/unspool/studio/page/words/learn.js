// Words of the view Learn.
export const words = {
  en: {
    says: "Update {u} of {n}: the model needs {train} nats per token on the text it trains on, {valid} on held-out text. {rank}",
    none: "The training has not begun. Press Start, or drop a text of your own on this page.", preparing: "Preparing: the text is read and n-grams are counted.",
    rankNone: "The best n-grams need {nats} ({name}).", rankSome: "It has passed {name} ({nats}).", rankAll: "It has passed every n-gram model; the best of them, {name}, needs {nats}.",
    curves: "Loss", curvesLabel: "Training and held-out loss in nats over updates, with lines of n-gram models", loss: "loss (nats per token)", updates: "update",
    trainKey: "training (running mean)", validKey: "held-out", gramKey: "n-grams",
    norm: "Gradient norm", normLabel: "Norm of the gradient before clipping over updates", normTitle: "‖∇‖", clipped: "clip {clip}",
    pace: "Pace", rate: "tokens per second", left: "time left", spent: "time spent", best: "best held-out", atUpdate: "at update {u}", score: "test", perplexity: "perplexity",
    tokens: "tokens: train, held-out, test", vocabulary: "vocabulary", parameters: "parameters", recipe: "batch, window, BPTT", optimiser: "optimiser, schedule", command: "The same in a terminal",
    samples: "What it writes", samplesNone: "Samples appear here as the model is validated.", sampleAt: "update {u}", sampleTable: "Samples written during training", sample: "sample",
    tableCurve: "Loss and gradient norm of every update", train: "running mean", valid: "held-out", seconds: "seconds", no: "",
  },
  zh: {
    says: "第 {u} 次更新，共 {n} 次：模型在训练文本上每个词元 {train} 奈特，在留出文本上 {valid} 奈特。{rank}",
    none: "训练还没有开始。请按“开始”，或把自己的文本拖到页面上。", preparing: "准备中：正在读取文本并统计 n 元语法。",
    rankNone: "最好的 n 元语法是 {nats}（{name}）。", rankSome: "它已经胜过 {name}（{nats}）。", rankAll: "它已经胜过所有 n 元语法；其中最好的是 {name}，{nats}。",
    curves: "损失", curvesLabel: "训练与留出的损失（奈特）随更新的变化，以及 n 元语法的水平线", loss: "损失（奈特每词元）", updates: "更新",
    trainKey: "训练（滑动平均）", validKey: "留出", gramKey: "n 元语法",
    norm: "梯度范数", normLabel: "裁剪前的梯度范数随更新的变化", normTitle: "‖∇‖", clipped: "裁剪 {clip}",
    pace: "速度", rate: "词元每秒", left: "剩余时间", spent: "已用时间", best: "最好的留出损失", atUpdate: "第 {u} 次更新", score: "测试集", perplexity: "困惑度",
    tokens: "词元：训练、留出、测试", vocabulary: "词表", parameters: "参数", recipe: "批量、窗口、BPTT", optimiser: "优化器、调度", command: "在终端里做同样的训练",
    samples: "生成的样本", samplesNone: "每次验证时生成的样本会显示在这里。", sampleAt: "第 {u} 次更新", sampleTable: "训练途中生成的样本", sample: "样本",
    tableCurve: "每次更新的损失与梯度范数", train: "滑动平均", valid: "留出", seconds: "秒", no: "",
  },
};
