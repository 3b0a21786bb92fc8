// Words of the view Unfold.
export const words = {
  en: { title: "Unfold" },
  zh: { title: "展开" },
};
