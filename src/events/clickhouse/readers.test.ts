/**
 * The tests of everything that reads the log, once more with all of it in ClickHouse (testing/all-in-clickhouse.ts): pages
 * and cursors, every filter, follow, the story of a request, exports in both forms, reports, sessions,
 * rebuilt sums of charts, sinks and archives. Charts themselves read sums of the ledger on both.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const room = join(import.meta.dir, '../..')
const preload = join(room, 'events/testing/all-in-clickhouse.ts')

/** Left out are tests that count reads or blocks of the ledger or parts of an answer, or wait a fixed time for a read. */
const suites = [
  ['events/routes.test.ts', ['reads a page only after the client', 'finds the blocks of pages and exports']],
  ['events/query/filters.test.ts', ['a page that finds little in a second']],
  ['events/sessions/sessions.test.ts', []],
  ['events/report/report.test.ts', []],
  ['events/export/export-jobs.test.ts', []],
  ['events/rollups/rebuild.test.ts', ['mends an earlier day while events of a later one']],
  ['sinks/archive/verify-archive.test.ts', []],
  ['sinks/delivery/deliver.test.ts', ['another control plane takes over when']],
] as const

test.each(suites)(
  'what %s asks of the log holds in ClickHouse',
  async (file, leftOut) => {
    const only = leftOut.length === 0 ? [] : ['-t', `^(?!.*(${leftOut.join('|')}))`]
    const command = [process.execPath, 'test', '--preload', preload, '--timeout', '120000', ...only, `./${file}`]
    const child = Bun.spawn(command, {
      ...{ cwd: room, stdout: 'pipe', stderr: 'pipe' },
      env: { ...process.env, LOG_RUNS: '10' },
    })
    const [code, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()])
    const failed = stderr.split('\n').filter((line) => line.startsWith('(fail)') || line.startsWith('error:'))
    expect({ code, failed }).toEqual({ code: 0, failed: [] })
    expect(Number(/^ *(\d+) pass$/m.exec(stderr)?.[1])).toBeGreaterThan(0)
  },
  300_000,
)
