/**
 * How costs grow with one thing: a point for each number of it, every figure beside its ratio to the smallest number.
 */
export interface Point {
  at: number
  figures: Readonly<Record<string, number>>
}

/** Measures a curve; `full` adds the points that take long. */
export type Curve = (full: boolean) => Promise<Point[]>

export function curveTable(name: string, points: readonly Point[]): string[][] {
  const [smallest] = points
  const figures = Object.keys(smallest?.figures ?? {})
  return [
    [name, ...figures.flatMap((figure) => [figure, '×'])],
    ...points.map(({ at, figures: found }) => [
      at.toLocaleString('en'),
      ...figures.flatMap((figure) => {
        const [value, first] = [found[figure] ?? Number.NaN, smallest?.figures[figure] ?? Number.NaN]
        return [value.toPrecision(3), (value / first).toFixed(2)]
      }),
    ]),
  ]
}
