/** Every process of a gateway, and whether it serves. */
import { request } from '../../api/request.ts'
import { isObject } from '../../json-object.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Id, Time } from '../../parts/small.tsx'
import { Empty, Table } from '../../parts/table.tsx'

/** How a worker stands, in a word, and how bad that is. */
function workerStatus({
  connected,
  left_at,
  serves_until,
}: JsonObject): [verdict: 'allow' | 'rate_limit' | 'deny', word: string] {
  if (connected === true) return ['allow', 'Connected']
  if (left_at !== null) return ['rate_limit', 'Stopped']
  const serves = typeof serves_until === 'string' && Date.parse(serves_until) > Date.now()
  return serves ? ['rate_limit', 'Silent'] : ['deny', 'Refusing']
}

export function Gateways() {
  const found = useLoaded(
    'workers',
    async (signal) => {
      const page = await request<JsonObject>('GET', '/v1/gateway-workers', { query: { limit: 100 }, signal })
      return Array.isArray(page.workers) ? page.workers.filter(isObject) : []
    },
    { everyMs: 15_000 },
  )
  return (
    <section class="card stack">
      <h2>Gateways</h2>
      <Show of={found} rows={2}>
        {(workers) => (
          <Table
            label="Gateways"
            rows={workers}
            keyOf={({ worker }) => String(worker)}
            columns={[
              { title: 'Gateway', cell: ({ gateway_name }) => String(gateway_name) },
              { title: 'Worker', from: 'wide', cell: ({ worker }) => <Id id={String(worker)} what="Worker" short /> },
              {
                title: 'State',
                cell: (worker) => {
                  const [verdict, word] = workerStatus(worker)
                  return (
                    <span class="badge" data-verdict={verdict}>
                      <Icon name={verdict} />
                      {word}
                    </span>
                  )
                },
              },
              {
                title: 'Lag',
                from: 'wide',
                cell: ({ acknowledged_version, state_version }) =>
                  Math.max(0, Number(state_version) - Number(acknowledged_version)),
              },
              {
                title: 'Serves until',
                from: 'wide',
                cell: ({ serves_until }) => (serves_until === null ? '–' : <Time at={String(serves_until)} />),
              },
              {
                title: 'Last heartbeat',
                cell: ({ last_heartbeat_at }) =>
                  last_heartbeat_at === null ? '–' : <Time at={String(last_heartbeat_at)} />,
              },
            ]}
            empty={
              <Empty title="No gateway has connected yet">
                <p>A gateway appears here after its start.</p>
              </Empty>
            }
          />
        )}
      </Show>
    </section>
  )
}
