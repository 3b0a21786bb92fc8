// Words of the view Unfold.
export const words = {
  en: {
    says: "{node} holds {count} at step {t}: {equation}. The gradient of the summed loss with respect to it has norm {norm}{number}.", saysNo: "{node} holds {count} at step {t}: {equation}. No gradient flows into it.",
    one: "1 value", many: "{n} values", start: "its initial value", input: "a token, read at this step", noNode: "Choose a node of the graph.",
    graph: "The network, unfolded", graphLabel: "The graph, folded and unfolded over {tau} steps", pull: "Pull it open", pullLabel: "Steps of the unfolded graph; 0: folded", pulled: "{tau} steps", folded: "folded",
    of: "Of what", demo: "a small network", run: "your run", cell: "cell", pattern: "Pattern of the book's figures", text: "text it reads", hidden: "units", note: "Left the folded graph: a square delays by one step. Right the same weights at every step. The two rows in a node are its values and, under them, its gradient: ochre plus, indigo minus. Loss, summed over the steps: {loss} nats.",
    only: "Pattern 10.4 (output fed back) exists for the Elman network only.", node: "The node", equation: "equation", shape: "shape", gradient: "gradient", values: "Values", valuesLabel: "Value of each unit of {node}", gradientsLabel: "Gradient of each unit of {node}", unit: "unit", value: "value", symbolOf: "({number})",
    tableGraph: "All nodes of the unfolded graph", nodeHead: "node", norm: "norm of value", gradientNorm: "norm of gradient", tableNode: "Values and gradients of {node}",
    weight: "One weight, three computations", which: "Parameter", shows: "What is shown", cellSays: "{name}[{row}, {column}] = {value}, gradient {gradient}",
    formula: "by hand", difference: "finite difference", engine: "engine (float32)", formulaNote: "{equation}{number}, float64", differenceNote: "(L(w+ε) − L(w−ε)) / 2ε, ε = {epsilon}", engineNote: "the kernels that train, one backward pass",
    agree: "Largest difference: {x} of the gradient.", agreeZero: "All three are 0.", step: "step", part: "its part of the gradient", partsLabel: "Part of each step in the gradient of the weight", tableWeight: "The gradient of {name}", method: "method", moveNode: "another node; ↑ ↓ within a step, ← → the same node a step before or after",
    keyTau: "one step less or more",
  },
  zh: {
    says: "第 {t} 步的 {node} 有{count}：{equation}。各步损失之和对它的梯度的范数为 {norm}{number}。", saysNo: "第 {t} 步的 {node} 有{count}：{equation}。没有梯度流入。",
    one: " 1 个值", many: " {n} 个值", start: "初始值", input: "这一步读入的词元", noNode: "请选择图中的一个节点。",
    graph: "展开的网络", graphLabel: "折叠图，以及展开 {tau} 步的图", pull: "拉开", pullLabel: "展开的步数；0 为折叠", pulled: "{tau} 步", folded: "折叠",
    of: "展示什么", demo: "小网络", run: "你的训练", cell: "循环单元", pattern: "书中图的模式", text: "读入的文本", hidden: "单元数", note: "左边是折叠图：方块表示延迟一步。右边是每一步都使用同样权重的展开图。节点内两行分别是值和其下的梯度：赭色为正，靛蓝为负。各步损失之和：{loss} 奈特。",
    only: "模式 10.4（输出反馈）只用于 Elman 网络。", node: "节点", equation: "方程", shape: "形状", gradient: "梯度", values: "值", valuesLabel: "{node} 各单元的值", gradientsLabel: "{node} 各单元的梯度", unit: "单元", value: "值", symbolOf: "（{number}）",
    tableGraph: "展开图的全部节点", nodeHead: "节点", norm: "值的范数", gradientNorm: "梯度的范数", tableNode: "{node} 的值与梯度",
    weight: "一个权重，三种算法", which: "参数", shows: "显示内容", cellSays: "{name}[{row}, {column}] = {value}，梯度 {gradient}",
    formula: "手算公式", difference: "有限差分", engine: "引擎（float32）", formulaNote: "{equation}{number}，float64", differenceNote: "(L(w+ε) − L(w−ε)) / 2ε，ε = {epsilon}", engineNote: "训练所用的内核，一次反向传播",
    agree: "最大相差梯度的 {x}。", agreeZero: "三者都是 0。", step: "步", part: "对梯度的贡献", partsLabel: "各步对该权重梯度的贡献", tableWeight: "{name} 的梯度", method: "算法", moveNode: "换一个节点：↑ ↓ 同一步内，← → 前后一步的同一节点",
    keyTau: "少一步或多一步",
  },
};
