"""The Chinese pages cover every topic of a course on recurrent networks, with one term per concept."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.zh-CN.md"))]
CODE = re.compile(r"^```(?:python|console)[ \w]*\n.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)

TOPICS = {
    "guide": [
        # kinds of recurrent networks
        "10.3", "10.4", "10.5", "教师强制", "图灵机", "886 个单元", "有理数", "10.8", "10.11", "负对数似然", "O(τ)", "并行",
        # from data to gradients
        "独立同分布", "语音", "译文", "价格", "视频", "前馈网络的局限", "有限自动机", "自回归模型", "隐变量自回归", "平稳性",
        "马尔可夫", "动态规划", "因果", "词元", "词表", "<unk>", "<pad>", "<bos>", "<eos>", "一元语法", "二元语法",
        "三元语法", "dive, into, deep, learning", "拉普拉斯平滑", "齐普夫定律", "随机抽样", "顺序分区", "覆盖性",
        "链式法则", "截断", "随机截断", "无偏", "线性情形", "特征值", "梯度裁剪", "权重衰减", "PyTorch",
        # a network with memory
        "参数共享", "一对一", "一对多", "多对一", "多对多", "∇h(t)", "diag(1 - h(t+1)²)", "像素", "通道", "优缺点总结",
        # hidden state and language
        "|V|^n", "隐藏层与隐状态之别", "多层感知机", "无隐状态", "有隐状态", "拼接", "machine", "It is raining",
        "《战争与和平》", "《小王子》", "困惑度", "几何平均数", "调和平均数", "无穷大",
        # unfolding
        "动态系统", "s(t) = f(s(t-1); θ)", "有损摘要", "自编码器", "g(t)", "泛化", "折叠图", "展开图",
    ],
    "bptt": ["通过时间反向传播", "O(√τ)"],
    "turing": ["图灵机", "有限自动机", "浮点数"],
    "unfolding": ["s(t) = f(s(t-1); θ)", "g(t)"],
    "baselines": ["n 元语法", "马尔可夫链", "齐普夫定律"],
    "vanishing": ["梯度消失", "爆炸", "滞后"],
    "data": ["词元", "词表", "随机抽样", "顺序分区"],
}  # fmt: skip
"""Topics in the order of their parts, and where they are covered."""

NOT_USED = {
    "滞后": ["步距", "时滞"],
    "通过时间反向传播": ["沿时间反向传播", "随时间反向传播", "通过时间的反向传播"],
    "前向缓存（tape）": ["磁带", "记录带"],
    "奈特": ["纳特", "nats"],
    "惊异度": ["惊讶度", "意外程度", "意外度"],
    "隐状态": ["隐藏状态"],
    "隐藏单元": ["隐单元", "隐层单元"],
    "循环单元": ["Elman 单元", "任何单元", "每种单元", "带门的单元"],
    "细胞状态": ["单元状态"],
    "权重绑定": ["共享词表", "权重共享"],
    "左移一位": ["右移一位", "右移一个词元"],
    "教师强制": ["teacher forcing"],
    "有损摘要": ["## 状态是摘要"],
    "无偏": ["在平均意义上"],
    "分离": ["从梯度中切断"],
    "记忆长度": ["视界"],
    "预测区间": ["区间应含", "预测带"],
    "逐位一致": ["永远同样的比特", "永远是同样的比特", "逐比特", "逐位相同", "比特相同", "一个比特都不差"],
    "断点续训": ["接着做", "接着训练"],
    "运行目录": ["训练目录", "的运行都可以"],
    "参考实现": ["孪生"],
    "正交初始化": ["从旋转开始", "以旋转开始", "旋转它的状态"],
    "校验和": ["封印"],
    "快速验证": ["一瞥"],
    "训练发散": ["离开了有限数"],
    "变长序列": ["长短不一的行"],
    "小批量": ["批次"],
    "n 元语法": ["n 元模型", "只会计数的模型"],
    "数据子集": ["训练部分", "验证部分", "测试部分"],
    "你": ["您"],
}
"""Each term, and the variants that stand for the same concept and are not used."""
ONLY_DELAY = ["延迟"]
"""It is the word for delay; on these pages nothing but lags is meant."""
PAGES_OF_LAGS = ["vanishing", "truncation"]


def prose(page: Path) -> str:
    """The text of a page without code and the names in it."""
    return CODE.sub(" ", page.read_text(encoding="utf-8"))


def rows(page: str) -> list[list[str]]:
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][
        1:
    ]


@pytest.mark.parametrize("page", TOPICS)
def test_a_page_covers_its_topics(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.zh-CN.md").read_text(encoding="utf-8")
    assert [topic for topic in TOPICS[page] if topic not in text] == []


def test_the_guide_has_its_parts_and_common_errors_in_both_languages() -> None:
    english, chinese = (
        (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("guide.md", "guide.zh-CN.md")
    )
    for level in ("## ", "### "):
        counts = [len(re.findall(rf"^{level}", text, re.MULTILINE)) for text in (english, chinese)]
        assert counts[0] == counts[1] > 5
    assert english.count("**Common error.**") == chinese.count("**常见错误。**") == 7


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "glossary" not in page.name], ids=lambda page: page.name
)
def test_one_term_stands_for_one_concept(page: Path) -> None:
    text = prose(page)
    found = [
        (variant, term) for term, variants in NOT_USED.items() for variant in variants if variant in text
    ]
    if page.name.split(".")[0] in PAGES_OF_LAGS:
        found += [(word, "滞后") for word in ONLY_DELAY if word in text]
    assert found == []


def test_both_glossaries_have_the_same_terms_and_the_chinese_pages_use_them() -> None:
    english = {(row[0], row[2]) for row in rows("glossary.md")}
    chinese = {(row[2], row[0]) for row in rows("glossary.zh-CN.md")}
    assert english == chinese
    assert len(english) > 30
    others = "\n".join(prose(page) for page in PAGES if "glossary" not in page.name)
    assert [term for _, term in chinese if term not in others] == []
    assert set(NOT_USED) - {"左移一位", "你"} <= {term for _, term in chinese}


def test_every_extra_is_named_in_both_readmes() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for name in ("README.md", "README.zh-CN.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert [extra for extra in extras if f"| `{extra}` |" not in text] == []
