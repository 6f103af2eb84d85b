/**
 * ClickHouse as a process that can be killed: `bun clickhouse-process.ts --port PORT --directory DIRECTORY`. With `--login
 * USER:PASSWORD` it serves TLS. It writes a line when it is ready and when an insert has been done, and waits `--pause`
 * milliseconds before it says so to who asked: so a caller can be killed in between.
 */
import { parseArgs } from 'node:util'
import { certificate, key } from '../../src/lib/testing/certificate.ts'
import { startClickHouse } from './clickhouse.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    directory: { type: 'string' },
    login: { type: 'string' },
    pause: { type: 'string', default: '0' },
  },
})
const { port, directory, login, pause } = values
const server = startClickHouse({
  port: Number(port),
  ...(directory === undefined ? {} : { directory }),
  ...(login === undefined ? {} : { login, tls: { key, cert: certificate } }),
})
server.after = async (statement) => {
  if (!statement.startsWith('INSERT')) return
  process.stdout.write('inserted\n')
  await Bun.sleep(Number(pause))
}
process.stdout.write(`ready ${server.url}\n`)
