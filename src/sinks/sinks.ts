/** Delivery to sinks as a control plane runs it. What speaks to receivers is loaded when there is a sink. */
import { join } from 'node:path'
import { readOrMake } from '../lib/made-once.ts'
import { Rounds } from '../lib/rounds.ts'
import { readDatabaseTime } from '../store/open.ts'
import { query } from '../store/query.ts'
import { sinks } from '../store/schema/ledger/sinks.ts'
import type { SinkRunner, SinkRunnerOptions } from './delivery/deliver.ts'

interface SinksOptions extends Omit<SinkRunnerOptions, 'host' | 'ledgerTime'> {
  dataDirectory: string
}

export interface Sinks {
  start(): void
  /** Resolves when nothing is being delivered; nothing follows. */
  stop(): Promise<void>
}

const everyMilliseconds = 1000

export function createSinks({ dataDirectory, ...options }: SinksOptions): Sinks {
  const { ledger, log } = options
  let loading: Promise<SinkRunner> | null = null
  const load = async () => {
    const { createSinkRunner } = await import('./delivery/deliver.ts')
    return createSinkRunner({
      ...options,
      ledgerTime: () => readDatabaseTime(ledger),
      host: readOrMake(join(dataDirectory, 'sink-owner'), () => Bun.randomUUIDv7()),
    })
  }
  const round = async () => {
    try {
      if (loading === null && (await query(ledger).$count(sinks)) === 0) return
      loading ??= load()
      await (await loading).round()
    } catch (error) {
      log.error({ error: String(error) }, 'Sinks could not be looked at: it will be tried again')
    }
  }
  const rounds = new Rounds(everyMilliseconds, round)
  return {
    start: () => rounds.start(),
    async stop() {
      await rounds.stop()
      await (await loading)?.stop()
    },
  }
}
