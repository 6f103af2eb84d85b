/** Every process of a gateway, and whether it serves. */
import type { Worker } from '../../api/routes.ts'
import { Icon } from '../../parts/icon.tsx'
import { type Loaded, Show } from '../../parts/loaded.tsx'
import { Id, Time } from '../../parts/small.tsx'
import { Empty, Table } from '../../parts/table.tsx'

/** How a worker stands, in a word, and how bad that is. */
function workerStatus({
  connected,
  left_at,
  serves_until,
}: Worker): [verdict: 'allow' | 'rate_limit' | 'deny', word: string] {
  if (connected) return ['allow', 'Connected']
  if (left_at !== null) return ['rate_limit', 'Stopped']
  const serves = serves_until !== null && Date.parse(serves_until) > Date.now()
  return serves ? ['rate_limit', 'Silent'] : ['deny', 'Refusing']
}

export function Gateways({ of: found }: { of: Loaded<readonly Worker[]> }) {
  return (
    <section class="card stack">
      <h2>Gateways</h2>
      <Show of={found} rows={2}>
        {(workers) => (
          <Table
            label="Gateways"
            rows={workers}
            keyOf={({ worker }) => worker}
            columns={[
              { title: 'Gateway', cell: ({ gateway_name }) => gateway_name },
              { title: 'Worker', from: 'wide', cell: ({ worker }) => <Id id={worker} what="Worker" short /> },
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
                cell: ({ acknowledged_version, state_version }) => Math.max(0, state_version - acknowledged_version),
              },
              {
                title: 'Serves until',
                from: 'wide',
                cell: ({ serves_until }) => (serves_until === null ? '–' : <Time at={serves_until} />),
              },
              {
                title: 'Last heartbeat',
                cell: ({ last_heartbeat_at }) => (last_heartbeat_at === null ? '–' : <Time at={last_heartbeat_at} />),
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
