/** Made-up words of four to twelve letters, the same in each run. */
export function words(count: number): string[] {
  let seed = 7
  const next = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return (seed >>> 8) % below
  }
  return Array.from({ length: count }, () =>
    Array.from({ length: 4 + next(9) }, () => String.fromCharCode(97 + next(26))).join(''),
  )
}
