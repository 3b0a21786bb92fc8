// "Save this view": this page with its numbers as one HTML file.
export async function saveView() {}
export const frozenState = () => ({});
