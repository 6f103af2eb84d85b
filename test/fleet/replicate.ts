/** A process of its own that keeps an embedded replica current: the native addon blocks its thread when a server hangs. */
import { createClient } from '@libsql/client'

const [file = '', syncUrl = '', authToken = ''] = process.argv.slice(2)
const client = createClient({ url: `file:${file}`, syncUrl, authToken })
for (let first = true; ; first = false) {
  try {
    await client.sync()
    if (first) process.stdout.write('synced\n')
  } catch {
    // The server is away; it is asked again.
  }
  await Bun.sleep(5)
}
