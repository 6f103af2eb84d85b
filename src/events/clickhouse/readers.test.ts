/**
 * The tests of everything that reads the log, once more with all of it in ClickHouse (testing/all-in-clickhouse.ts): pages
 * and cursors, every filter, follow, the story of a request, exports in both forms, reports, rebuilt sums of charts, sinks
 * and archives. Charts and sessions read tables of the ledger on both. One process runs them all: one for each file would
 * load the modules and start the engine again.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const room = join(import.meta.dir, '../..')
const preload = join(room, 'events/testing/all-in-clickhouse.ts')

const files = [
  'events/routes.test.ts',
  'events/query/filters.test.ts',
  'events/report/report.test.ts',
  'events/export/export-jobs.test.ts',
  'events/rollups/rebuild.test.ts',
  'sinks/archive/verify-archive.test.ts',
  'sinks/delivery/deliver.test.ts',
]

const leftOut = [
  // They count reads or blocks of the ledger or parts of an answer, or wait a fixed time for a read.
  ...[
    'reads a page only after the client',
    'finds the blocks of pages and exports',
    'a page that finds little in a second',
  ],
  ...['mends an earlier day while events of a later one', 'another control plane takes over when'],
  // They end before the log is read.
  ...['refuses [?{"]', 'refuses a cursor with [{]'],
  // It is about arithmetic.
  'sums are exact to the nano-dollar',
]

test('what readers ask of the log holds in ClickHouse', async () => {
  const only = `^(?!.*(${leftOut.join('|')}))`
  const paths = files.map((file) => `./${file}`)
  const command = [process.execPath, 'test', '--preload', preload, '--timeout', '120000', '-t', only, ...paths]
  const child = Bun.spawn(command, {
    ...{ cwd: room, stdout: 'pipe', stderr: 'pipe' },
    env: { ...process.env, LOG_RUNS: '10' },
  })
  const [code, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()])
  const failed = stderr.split('\n').filter((line) => line.startsWith('(fail)') || line.startsWith('error:'))
  expect({ code, failed }).toEqual({ code: 0, failed: [] })
  const [, tests, ran] = /^Ran (\d+) tests across (\d+) files/m.exec(stderr) ?? []
  expect(Number(ran)).toBe(files.length)
  expect(Number(tests)).toBeGreaterThan(files.length)
}, 900_000)
