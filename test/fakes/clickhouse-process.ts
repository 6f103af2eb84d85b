/**
 * ClickHouse as a process that can be killed: `bun clickhouse-process.ts PORT DIRECTORY [USER:PASSWORD]`. With a login it
 * serves TLS. It writes a line when it is ready and when an insert has been done, and waits some time before it says so
 * to who asked: so a caller can be killed in between.
 */
import { certificate, key } from '../../src/lib/testing/certificate.ts'
import { startClickHouse } from './clickhouse.ts'

const [port = '0', directory = '', login] = process.argv.slice(2)
const pauseMilliseconds = 200
const server = startClickHouse({
  port: Number(port),
  directory,
  ...(login === undefined ? {} : { login, tls: { key, cert: certificate } }),
})
server.after = async (statement) => {
  if (!statement.startsWith('INSERT')) return
  process.stdout.write('inserted\n')
  await Bun.sleep(pauseMilliseconds)
}
process.stdout.write('ready\n')
