/** A function of code points that keeps its answers, a bounded number of them. */
export function memoized<Value>(work: (codePoint: number) => Value, kept: number): (codePoint: number) => Value {
  const known = new Map<number, Value>()
  return (codePoint) => {
    const found = known.get(codePoint)
    if (found !== undefined) return found
    const value = work(codePoint)
    if (known.size >= kept) known.clear()
    known.set(codePoint, value)
    return value
  }
}
