/**
 * What a sidecar costs: `bun test/load/costs/sidecar-cost.ts [TOKENS] [SECONDS]` starts one against a primary that
 * holds so many tokens (100 000) and prints the time until it is ready and what it keeps on disk, then, over so many
 * idle seconds (60) and over as many changes of one token each, the bytes from the primary and the processor time of
 * its processes.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../../src/lib/ids.ts'
import { until } from '../../support/eventually.ts'
import { processorSeconds, residentBytes } from '../../support/processes.ts'
import { type Sidecar, SidecarFleet } from '../../support/sidecar-fleet.ts'

const tokens = Number(process.argv[2] ?? 100_000)
const seconds = Number(process.argv[3] ?? 60)
const rowsAtOnce = 5000

const fleet = await SidecarFleet.start()
for (let made = 0; made < tokens; made += rowsAtOnce) {
  const rows = Array.from({ length: Math.min(rowsAtOnce, tokens - made) }, () => ({
    id: newId(),
    hash: new Bun.CryptoHasher('sha256', newId()).digest('hex'),
  }))
  await fleet.client().execute({
    sql: `insert into tokens (id, hash, purpose, principal_type, key_class, gateway_id, roles, policy_ids,
            access_policy_ids, metadata_trust, owner_kind, owner_id, account_ids, version)
          select value ->> 'id', value ->> 'hash', 'general', 'api_token', 'durable', ?, '["member"]', '[]', '[]', 'none',
            'team', 'team', '[]', 1 from json_each(?)`,
    args: [fleet.gatewayId, JSON.stringify(rows)],
  })
}

const started = performance.now()
const sidecar = await fleet.sidecar('cost')
await sidecar.ready()
const readyMs = Math.round(performance.now() - started)
const bytesAtStart = await sidecar.metric('gatehouse_replicated_bytes')
const files = ['', '-wal', '-shm', '-client_wal_index'].map((suffix) => [
  `state.db${suffix}`,
  statSync(join(sidecar.directory, `gateway/replica/current/state.db${suffix}`)).size,
])
console.info({ tokens, readyMs, bytesAtStart, files: Object.fromEntries(files), memory: memoryOf(sidecar) })

const idle = await costOf(sidecar, () => Bun.sleep(seconds * 1000))
console.info({ idleSeconds: seconds, ...idle })
const changing = await costOf(sidecar, async () => {
  for (let change = 0; change < seconds; change++) {
    await fleet.addToken()
    await Bun.sleep(100)
  }
  const { version } = await fleet.head()
  await until('all is read', async () => (await sidecar.metric('gatehouse_state_version')) >= version)
})
console.info({ changes: seconds, ...changing, memory: memoryOf(sidecar) })
await fleet.stop()
process.exit(0)

function processesOf({ supervisorPid, gatewayPid, replicatorPid }: Sidecar) {
  return { supervisor: supervisorPid, gateway: gatewayPid(), replicator: replicatorPid() }
}

function memoryOf(measured: Sidecar): Record<string, string> {
  return Object.fromEntries(
    Object.entries(processesOf(measured)).map(([name, pid]) => [name, `${Math.round(residentBytes(pid) / 1e6)} MB`]),
  )
}

async function costOf(measured: Sidecar, work: () => Promise<void>) {
  const processes = Object.entries(processesOf(measured))
  const before = processes.map(([, pid]) => processorSeconds(pid))
  const bytes = await measured.metric('gatehouse_replicated_bytes')
  await work()
  return {
    bytes: (await measured.metric('gatehouse_replicated_bytes')) - bytes,
    processorSeconds: Object.fromEntries(
      processes.map(([name, pid], at) => [name, Number((processorSeconds(pid) - (before[at] ?? 0)).toFixed(2))]),
    ),
  }
}
