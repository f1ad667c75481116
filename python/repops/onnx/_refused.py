"""Operators that are refused by name."""

from ._table import refuse

refuse("it works on texts, which no program has", "StringConcat", "StringNormalizer", "StringSplit")
refuse(
    "it works on texts, which no program has", "RegexFullMatch", "TfIdfVectorizer", "LabelEncoder"
)
refuse("it decodes files of images; decode them before", "ImageDecoder")
refuse(
    "the size of its result depends on its input; repops.torch.functional.nms_mask has a fixed one",
    "NonMaxSuppression",
)
refuse("take RoiAlign in its place", "MaxRoiPool")
refuse("deprecated since opset 10; convert the model to Resize", "Upsample")
