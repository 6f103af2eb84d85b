/**
 * The replicator: a separate process around the native replica, because every native call may block the thread, and a
 * panic ends the process. It opens the replica it is ordered to, syncs on request and at intervals, and reports its
 * progress. It ends with its gateway, when the channel between them closes.
 *
 * It decides nothing: replica.ts decides what a finished sync means, which folder is in use, and when to start over.
 */
import { type OpenReplica, openReplica } from '../../store/open-replica.ts'
import type { Head } from '../../store/propagation.ts'
import { type ReplicatorOrder, type ReplicatorReport, replicatorOrderSchema } from '../protocol/replicator-message.ts'

const aliveEveryMs = 3000

export interface ReplicatorChannel {
  report(report: ReplicatorReport): void
  /** Calls the listener with each message of the gateway. */
  onOrder(listener: (order: unknown) => void): void
}

/** Serves orders until the process ends. */
export function replicate({ report, onOrder }: ReplicatorChannel): void {
  let replica: Promise<OpenReplica | null> | null = null
  let wanted = false
  let syncing = false
  setInterval(() => report({ kind: 'alive' }), aliveEveryMs)

  const syncWhileWanted = async (): Promise<void> => {
    if (syncing) return
    syncing = true
    try {
      const opened = await replica
      while (wanted && opened) {
        wanted = false
        report(await syncOnce(opened))
        // Reports are sent, and native finalizers run, only between two syncs.
        await Bun.sleep(0)
      }
    } finally {
      syncing = false
    }
  }

  onOrder((received) => {
    const order = replicatorOrderSchema.parse(received)
    if (order.kind === 'open') replica ??= open(order, report)
    wanted = true
    void syncWhileWanted()
  })
}

async function open(
  order: Extract<ReplicatorOrder, { kind: 'open' }>,
  report: ReplicatorChannel['report'],
): Promise<OpenReplica | null> {
  try {
    const { file, url, secret: token, dataDirectory } = order
    const replica = await openReplica({ file, url, token }, dataDirectory)
    if (!order.check) return replica
    const [found] = await replica.read<{ quick_check: string }>('select quick_check from pragma_quick_check(1)')
    if (found?.quick_check === 'ok') return replica
    report({ kind: 'failed', reason: `The check found: ${found?.quick_check}`, damaged: true })
  } catch (error) {
    report({ kind: 'failed', reason: String(error), damaged: true })
  }
  return null
}

async function syncOnce(replica: OpenReplica): Promise<ReplicatorReport> {
  try {
    const { frame } = await replica.sync()
    const [head] = await replica.read<Head>('select version, nonce, history from state_head where id = 1')
    if (head === undefined) return { kind: 'failed', reason: 'The state has no head yet', damaged: false }
    return { kind: 'synced', head, frame }
  } catch (error) {
    const reason = String(error)
    return { kind: 'failed', reason, damaged: /malformed|not a database|SQLITE_CORRUPT|SQLITE_NOTADB/i.test(reason) }
  }
}
