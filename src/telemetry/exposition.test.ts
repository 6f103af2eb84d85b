import { expect, test } from 'bun:test'
import { counterText, gaugeText, histogram, histogramsText, joinedText, observe } from './exposition.ts'

test("several processes' figures stand in one exposition, each family once and each sample with its worker", () => {
  const duration = histogram([1])
  observe(duration, 0.5)
  const one = counterText('a_total', 'Some a', new Map([['kind="x"', 2]])) + gaugeText('b', 'Some b', 1)
  const other =
    counterText('a_total', 'Some a', new Map([['kind="x"', 3]])) +
    histogramsText('c', 'Some c', 'family', new Map([['chat', duration]]))
  expect(
    joinedText(
      new Map([
        ['0', one],
        ['1', other],
      ]),
    ),
  ).toBe(
    [
      '# HELP a_total Some a',
      '# TYPE a_total counter',
      'a_total{worker="0",kind="x"} 2',
      'a_total{worker="1",kind="x"} 3',
      '# HELP b Some b',
      '# TYPE b gauge',
      'b{worker="0"} 1',
      '# HELP c Some c',
      '# TYPE c histogram',
      'c_bucket{worker="1",family="chat",le="1"} 1',
      'c_bucket{worker="1",family="chat",le="+Inf"} 1',
      'c_sum{worker="1",family="chat"} 0.5',
      'c_count{worker="1",family="chat"} 1',
      '',
    ].join('\n'),
  )
})
