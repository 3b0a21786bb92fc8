// Words of the view Units.
export const words = {
  en: { title: "Units" },
  zh: { title: "单元" },
};
