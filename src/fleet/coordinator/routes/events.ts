/** Ingests a worker's events: NDJSON whose exact bytes are chained and stored (events/proof/README.md). */

import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { arrivalStatements } from '../../../escalations/arrivals.ts'
import { ingestEvents, type ShippedEvent } from '../../../events/log/ingest.ts'
import { localPace, remotePace, SlicePace } from '../../../events/log/slice-pace.ts'
import { Failure } from '../../../failure.ts'
import { eventBatchLimit, eventLineHead, eventsReplySchema, streamIdHeader, workerHeader } from '../../protocol/wire.ts'
import { IngestQueue } from '../events-queue.ts'
import type { FleetOptions } from '../options.ts'
import type { UsageControl } from '../usage.ts'
import type { WorkerRegistry } from '../worker-registry.ts'
import { connectedWorker } from './heartbeat.ts'

const maxBytes = 4 * 1024 * 1024
/** The part of a line before the body and its opening brace. The line ends with the braces of body and line. */
const headForm = /^\{"n":(\d{1,15}),"digest":"([0-9a-f]{64})","body":(?=\{)/
/** The most characters that the pattern can match: the longest head and the opening brace. */
const longestHead = eventLineHead(999_999_999_999_999, 'f'.repeat(64)).length + 1

export interface EventsDependencies {
  options: FleetOptions
  registry: WorkerRegistry
  usage: Pick<UsageControl, 'bookingStatements' | 'onBooked'>
}

/** The most batches of all workers that are being ingested or wait. A worker sends one at a time. */
const maxBatches = 64

export function eventsRoute({ options, registry, usage }: EventsDependencies) {
  const queue = new IngestQueue({ atOnce: 4, most: maxBatches })
  const bounds = 'url' in options.source ? remotePace : localPace
  const pace = new SlicePace(options.clock, bounds, (milliseconds) => options.meter?.sliced(milliseconds / 1000))
  return new Elysia({ name: 'runtime events' }).use(conventions).post(
    '/v1/gateway-runtime/events',
    async ({ principal, body, request: { headers } }) => {
      const workerNumber = Number(headers.get(workerHeader) ?? Number.NaN)
      if (!Number.isSafeInteger(workerNumber)) throw new Failure('invalid_parameter', { param: workerHeader })
      const worker = await connectedWorker(registry, principal, workerNumber, headers.get(streamIdHeader) ?? '')
      if (body.byteLength > maxBytes) throw new Failure('request_too_large')
      const lines = parseLines(body)
      const receivedAt = options.clock.now()
      const { seq, digest } = await queue.run(() =>
        ingestEvents(options.ledger, {
          chain: worker.worker,
          gatewayId: worker.gatewayId,
          lines,
          receivedAt,
          pace,
          newId: options.newId,
          log: options.log,
          bookingStatements: (events) => [
            ...arrivalStatements(events, receivedAt),
            ...usage.bookingStatements(worker.worker, events),
          ],
          onIngested: (events) => {
            usage.onBooked(events)
            options.meter?.ingested(events)
            options.lastUse?.ingested(events, receivedAt)
          },
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
      detail: { tags: ['Gateway runtime'], summary: "Append events to a worker's chain" },
    },
  )
}

/** Splits lines without parsing the bodies, byte for byte. Throws `invalid_parameter`. */
export function parseLines(bytes: Uint8Array): ShippedEvent[] {
  const lines = decode(bytes)
    .split('\n')
    .filter((line) => line !== '')
  if (lines.length > eventBatchLimit) {
    throw new Failure('invalid_parameter', { message: `A batch has at most ${eventBatchLimit} events` })
  }
  return lines.map((line, index) => {
    // Only the head is matched: a pattern for a whole line would scan its body, which is most of the line.
    const [head = '', n, digest] = headForm.exec(line.slice(0, longestHead)) ?? []
    const body = line.slice(head.length, -1)
    if (n === undefined || digest === undefined || !line.endsWith('}}')) {
      throw new Failure('invalid_parameter', {
        message: 'A line of the batch is malformed',
        param: `line.${index + 1}`,
      })
    }
    return { n: Number(n), digest, body }
  })
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new Failure('invalid_parameter', { message: 'The batch is not valid UTF-8', cause })
  }
}
