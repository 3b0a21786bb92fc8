// The guided tour along chapter 10.
export function startTour() {}
export function openTour() {}
