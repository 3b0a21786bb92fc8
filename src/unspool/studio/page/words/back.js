// Words of the view Back in time.
export const words = {
  en: { title: "Back in time" },
  zh: { title: "回溯" },
};
