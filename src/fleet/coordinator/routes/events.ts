/** Ingests a worker's records, whose exact bytes are chained and stored (events/proof/README.md). */

import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { arrivalStatements } from '../../../escalations/arrivals.ts'
import { ingestEvents } from '../../../events/ingest/ingest.ts'
import { Failure } from '../../../failure.ts'
import { eventsReplySchema, streamIdHeader, workerHeader } from '../../protocol/wire.ts'
import { IngestQueue } from '../events-queue.ts'
import type { FleetOptions } from '../options.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { readBatch } from './events-batch.ts'
import { connectedWorker } from './heartbeat.ts'

export interface EventsDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'bookingStatements' | 'onBooked'>
}

/** The most batches of all workers that are being ingested or wait. A worker sends one at a time. */
const maxBatches = 64

export function eventsRoute({ options, registry, usage }: EventsDependencies) {
  const queue = new IngestQueue({ atOnce: 4, most: maxBatches })
  return new Elysia({ name: 'runtime events' }).use(conventions).post(
    '/v1/gateway-runtime/events',
    async ({ principal, body, request: { headers } }) => {
      const workerNumber = Number(headers.get(workerHeader) ?? Number.NaN)
      if (!Number.isSafeInteger(workerNumber)) throw new Failure('invalid_parameter', { param: workerHeader })
      const worker = await connectedWorker(registry, principal, workerNumber, headers.get(streamIdHeader) ?? '')
      const batch = await readBatch(body, headers.get('content-encoding'))
      const receivedAt = options.clock.now()
      const { seq, digest } = await queue.run(() =>
        ingestEvents(options.ledger, {
          ...batch,
          chain: worker.worker,
          gatewayId: worker.gatewayId,
          receivedAt,
          newId: options.newId,
          log: options.log,
          bookingStatements: (records) => [
            ...arrivalStatements(records, receivedAt),
            ...usage.bookingStatements(worker.worker, records),
          ],
          onIngested: (records) => {
            usage.onBooked(records)
            options.meter?.ingested(records)
            options.lastUse?.ingested(records, receivedAt)
          },
          onHeld: (milliseconds) => options.meter?.held(milliseconds / 1000),
        }),
      )
      return { seq, digest }
    },
    {
      access: 'runtime:session',
      internal: true,
      bodyType: 'application/x-ndjson',
      body: z.instanceof(Uint8Array),
      response: eventsReplySchema,
      detail: { tags: ['Gateway runtime'], summary: "Append records to a worker's chain" },
    },
  )
}
