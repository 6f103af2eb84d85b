import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Slots } from './slots.ts'

test('gives each of what runs a number of its own, below what ever ran at once', () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(20))), (steps) => {
      const slots = new Slots()
      const running: number[] = []
      let most = 0
      for (const step of steps) {
        if (step === null) running.push(slots.take())
        else {
          const [ended] = running.splice(step % Math.max(1, running.length), 1)
          if (ended !== undefined) slots.give(ended)
        }
        most = Math.max(most, running.length)
        expect(new Set(running).size).toBe(running.length)
        expect(Math.max(-1, ...running)).toBeLessThan(Math.max(1, most))
      }
    }),
  )
})
