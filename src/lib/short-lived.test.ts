import { heapStats } from 'bun:jsc'
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Placed, ShortLivedMap, ShortLivedSet } from './short-lived.ts'

const item = (): Placed => ({ place: -1 })

test('a set has the same items as a Set after the same changes', () => {
  const steps = fc.array(fc.record({ add: fc.boolean(), which: fc.nat(9) }))
  fc.assert(
    fc.property(steps, (given) => {
      const items = Array.from({ length: 10 }, item)
      const [set, model] = [new ShortLivedSet<Placed>(), new Set<Placed>()]
      for (const { add, which } of given) {
        const one = items[which] ?? item()
        if (add) set.add(one)
        else set.delete(one)
        if (add) model.add(one)
        else model.delete(one)
        const seen = [...set]
        expect(seen).toHaveLength(model.size)
        expect(new Set(seen)).toEqual(model)
        expect(set.size).toBe(model.size)
        expect(items.filter((each) => set.has(each))).toEqual(items.filter((each) => model.has(each)))
      }
    }),
  )
})

test('items may be added and removed during iteration: remaining ones are visited, removed ones are not', () => {
  const visits = fc.record({
    size: fc.nat(12),
    outOf: fc.array(fc.tuple(fc.nat(12), fc.nat(12))),
    adds: fc.array(fc.nat(12)),
  })
  fc.assert(
    fc.property(visits, ({ size, outOf, adds }) => {
      const items = Array.from({ length: size }, item)
      const set = new ShortLivedSet<Placed>()
      for (const each of items) set.add(each)
      const gone = new Set<Placed>()
      const met = new Set<Placed>()
      for (const each of set) {
        expect(gone).not.toContain(each)
        met.add(each)
        const at = items.indexOf(each)
        for (const [when, which] of outOf) {
          const other = items[which]
          if (when !== at || other === undefined) continue
          set.delete(other)
          gone.add(other)
        }
        if (adds.includes(at)) set.add(item())
      }
      for (const each of items) expect(met.has(each) || gone.has(each)).toBe(true)
    }),
  )
})

test('a map has the same entries as a Map after the same changes, for any names', () => {
  const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', '0', '1', ''), fc.string({ maxLength: 2 }))
  fc.assert(
    fc.property(fc.array(fc.record({ add: fc.boolean(), name, value: fc.nat() })), (given) => {
      const [map, model] = [new ShortLivedMap<number>(), new Map<string, number>()]
      for (const { add, name, value } of given) {
        if (add) map.set(name, value)
        else map.delete(name)
        if (add) model.set(name, value)
        else model.delete(name)
        expect(map.size).toBe(model.size)
        expect(map.get(name)).toBe(model.get(name))
        expect(map.has(name)).toBe(model.has(name))
      }
      for (const [known, value] of model) expect(map.get(known)).toBe(value)
    }),
  )
})

describe('removed items are freed by the next young garbage collection, at any age of the collection', () => {
  // A Set or Map of JavaScriptCore's own keeps all 20 000.
  const most = 5000

  /** The objects left by so many that came and went, eight at a time, while the young were collected. */
  function left(add: (one: Placed, name: string) => void, remove: (one: Placed, name: string) => void): number {
    const count = () => Number(heapStats().objectTypeCounts.Date ?? 0)
    const inside: { one: Placed & { made: Date }; name: string }[] = []
    Bun.gc(true)
    const before = count()
    for (let made = 0; made < 20_000; made++) {
      const entry = { one: { place: -1, made: new Date(made) }, name: `exchange-${made}` }
      inside.push(entry)
      add(entry.one, entry.name)
      const oldest = inside.length > 8 ? inside.shift() : undefined
      if (oldest !== undefined) remove(oldest.one, oldest.name)
      if (made % 1000 === 0) Bun.gc(false)
    }
    Bun.gc(false)
    return count() - before
  }

  test('of a set', () => {
    const set = new ShortLivedSet<Placed>()
    expect(
      left(
        (one) => set.add(one),
        (one) => set.delete(one),
      ),
    ).toBeLessThan(most)
  })

  test('of a map', () => {
    const map = new ShortLivedMap<Placed>()
    expect(
      left(
        (one, name) => map.set(name, one),
        (_, name) => map.delete(name),
      ),
    ).toBeLessThan(most)
  })
})
