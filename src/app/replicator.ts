/** The replicator's composition root: the native replica behind the channel to the gateway that started this process. */
import { Failure } from '../failure.ts'
import { replicate } from '../fleet/replica/replicator.ts'

/**
 * Serves the gateway as long as that lives: the gateway ends this process, even if a signal went to the whole group.
 * Never resolves. Throws `usage` if no gateway started it.
 */
export function serveReplicator(): Promise<never> {
  if (process.send === undefined) throw new Failure('usage', { message: 'Only a gateway starts its replicator' })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => undefined)
  process.on('disconnect', () => process.exit(0))
  replicate({
    report(report) {
      if (process.connected) process.send?.(report)
    },
    onOrder: (listener) => process.on('message', listener),
  })
  return new Promise(() => undefined)
}
