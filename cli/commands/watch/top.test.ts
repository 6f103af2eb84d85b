import { afterAll, beforeEach, expect, test } from 'bun:test'
import { runCommandLine } from '../../command/command.ts'
import type { LiveScreen } from '../../terminal/live-screen.ts'
import { recordingControlPlane } from '../../testing/control-plane.ts'
import { recordingTerminal } from '../../testing/terminal.ts'
import { top } from './top.ts'

const sums = { refused: 1, errors: 0, latency_ms: 20, input_tokens: 7, output_tokens: 3, cost: 0.5 }
const used = {
  rows: [
    { group: { model: 'm', token: 't1' }, names: { token: 'app' }, requests: 2, ...sums },
    { group: { model: 'm', token: 't2' }, names: { token: null }, requests: 6, ...sums },
  ],
  totals: { requests: 8, ...sums, refused: 2, latency_ms: 40, cost: 1 },
}
let refusesTargets = false
let isDown = false
const refused = (status: number, code: string) =>
  Response.json({ error: { message: code, code }, request_id: null }, { status })
const control = recordingControlPlane(({ path }) => {
  if (isDown) return refused(503, 'dependency_unavailable')
  if (path === '/v1/usage/report') return used
  if (path === '/v1/events/series') return { totals: [{ requests: 9, cost: 12.5 }] }
  const flying = (model: string, in_flight: number) => ({ model, in_flight })
  return refusesTargets
    ? refused(403, 'permission_denied')
    : { targets: [flying('m', 1), flying('m', 2), flying('slow', 1)] }
})
afterAll(() => control.stop())
beforeEach(() => {
  refusesTargets = false
  isDown = false
})

async function run(rawArguments: string[], openScreen?: () => LiveScreen) {
  const terminal = recordingTerminal({
    environment: control.environment,
    ...(openScreen === undefined ? {} : { openScreen }),
  })
  await runCommandLine(top(terminal), rawArguments, terminal)
  return terminal.written()
}
const words = (text: string) => text.split('\n').map((line) => line.split(/ {2,}/).map((cell) => cell.trim()))

test('prints one view without a terminal: all, models with what is in flight, tokens by their names', async () => {
  const view = words(await run([]))
  expect(view[1]).toEqual([
    ...['requests 8', 'in flight 4', 'refused 2', 'errors 0', 'latency 5 ms', 'USD 1.00', 'USD today 12.50'],
  ])
  expect(view).toContainEqual(['m', '8', '3', '2', '0', '5 ms', '14', '6', '1.00'])
  expect(view).toContainEqual(['slow', '0', '1', '0', '0', '-', '0', '0', '0.00'])
  expect(view).toContainEqual(['app', '2', '-', '1', '0', '10 ms', '7', '3', '0.50'])
  expect(view).toContainEqual(['t2', '6', '-', '1', '0', '3 ms', '7', '3', '0.50'])
})

test('leaves out what is in flight where the caller may not see it', async () => {
  refusesTargets = true
  const out = await run(['--once'])
  expect(out).toContain('in flight -')
  expect(out).toMatch(/^m +8 +- /m)
})

test('redraws until it is ended, says that the control plane is away, and closes the screen', async () => {
  const drawn: string[] = []
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let closed = 0
  const draw = (lines: readonly string[]) => {
    drawn.push(lines.join('\n'))
    isDown = true
    if (drawn.length === 2) end()
  }
  const close = () => {
    closed += 1
  }
  await run(['--interval-secs', '1'], () => ({ draw, ended, close }))
  expect(drawn[0]).toContain('requests 8')
  expect(drawn[1]).toBe('dependency_unavailable; trying again')
  expect(closed).toBe(1)
})

test('an error at the start leaves the screen alone', async () => {
  isDown = true
  let opened = 0
  const open = () => {
    opened += 1
    throw new Error('Not to be opened')
  }
  await expect(run([], open)).rejects.toThrow('dependency_unavailable')
  expect(opened).toBe(0)
  await expect(run(['--interval-secs', '0'])).rejects.toThrow('--interval-secs')
})
