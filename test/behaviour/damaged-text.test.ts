/** Bytes that are no text in a table that is not part of the proof: libSQL's native part ends whoever reads them. */
import { Database } from 'bun:sqlite'
import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createToken } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { run, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(60_000)

beforeAll(() => executable().then(() => undefined), 240_000)

test('a control plane that stops at a damaged row names table, column and row, and starts after the repair', async () => {
  const directory = temporaryDirectory()
  const data = join(directory, 'data')
  const written = (sql: string) => {
    const ledger = new Database(join(data, 'ledger.db'))
    ledger.run(sql)
    ledger.close()
  }
  try {
    await using first = await startGatehouse({ dataDirectory: data })
    const { id } = await createToken(first)
    expect(await first.end('SIGTERM')).toBe(0)
    written(`update tokens set name = cast(x'6761ff' as text) where id = '${id}'`)
    const { adminToken } = first
    await using second = await startGatehouse({ dataDirectory: data, adminToken })
    // No answer at all is what shows that the process has ended.
    const ask = () =>
      fetch(`${second.baseUrl}/v1/tokens`, { headers: { authorization: `Bearer ${adminToken}` } }).catch(() => null)
    expect(await ask()).toBeNull()
    const named = 'The table tokens of the ledger database holds bytes that are no text, in name of row '
    await until('it says what is wrong', () => second.stderr().includes(named))
    await second.stop()
    const refused = await run(['control-plane', '--data', data, '--control-plane-listen', '127.0.0.1:0'])
    expect([refused.code, refused.stderr.includes(named)]).toEqual([1, true])
    written(`update tokens set name = 'mended' where id = '${id}'`)
    await using third = await startGatehouse({ dataDirectory: data, adminToken })
    const answer = await fetch(`${third.baseUrl}/v1/tokens`, { headers: { authorization: `Bearer ${adminToken}` } })
    expect(await answer.text()).toContain('"mended"')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
