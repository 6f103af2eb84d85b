import { expect, test } from 'bun:test'

// A browser has them.
Object.defineProperty(navigator, 'languages', { value: ['en'], configurable: true })
const { aboutAgo, axisTimes, fullTime, milliseconds, money, monthTitle, withTimes } = await import('./formats.ts')

test('gives every tick of a time axis another label', () => {
  for (const step of [0.2, 0.5, 1, 2, 5, 20, 250, 500, 2000]) {
    const marks = Array.from({ length: 5 }, (_, index) => milliseconds(index * step))
    expect([step, new Set(marks).size]).toEqual([step, 5])
  }
  expect([1, 1.5, 1.94, 9.96, 12.4].map(milliseconds)).toEqual(['1 ms', '1.5 ms', '1.9 ms', '10 ms', '12 ms'])
})

test('writes amounts of one size with as many decimals', () => {
  expect([1234.5, 0.1, 0.0846, 0.05, 0.001, 0.000242, 0, -0.02].map(money)).toEqual([
    '$1,234.50',
    '$0.10',
    '$0.0846',
    '$0.0500',
    '$0.001000',
    '$0.000242',
    '$0.00',
    '-$0.0200',
  ])
  expect([0.0000018, 0.00000052].map(money)).toEqual(['$0.000002', '<$0.000001'])
})

test('writes the day of an axis where one begins, and only days where they are the step', () => {
  const noon = new Date(2026, 10, 23, 12).getTime() / 1000
  expect(axisTimes([noon, noon + 43_200], 43_200)).toEqual(['12:00 PM\nNov 23', '12:00 AM\nNov 24'])
  expect(axisTimes([noon, noon + 3600], 3600)).toEqual(['12:00 PM\nNov 23', '1:00 PM'])
  expect(axisTimes([noon, noon + 86_400], 86_400)).toEqual(['Nov 23', 'Nov 24'])
})

test('writes a month by its name', () => {
  expect(monthTitle('2026-11')).toBe('November 2026')
})

test('says of what is known to the minute only that it is about then', () => {
  const now = Date.parse('2026-11-25T12:00:30Z')
  expect(aboutAgo('2026-11-25T12:00:00Z', now)).toBe('in the last two minutes')
  expect(aboutAgo('2026-11-25T11:00:00Z', now)).toBe('about 1 hr. ago')
})

test('writes the instants in a sentence of the API as the console does', () => {
  const at = '2026-11-25T21:23:37.985Z'
  expect(withTimes(`Until ${at}`)).toBe(`Until ${fullTime(at)}`)
  expect(withTimes('no instant: 2026-11-25')).toBe('no instant: 2026-11-25')
})
