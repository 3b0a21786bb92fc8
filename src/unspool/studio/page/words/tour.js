// Words of the tour.
export const words = { en: {}, zh: {} };
