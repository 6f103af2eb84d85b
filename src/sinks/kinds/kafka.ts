/**
 * Messages of a Kafka topic, with the chain as their key, so that a partition has the records of a chain in their order.
 * All replicas have a parcel before it counts. kafkajs speaks the protocol in JavaScript alone, so that the executable
 * needs no addon; it is loaded with the first sink of this kind. `../patches/` mends one of its faults: an idle connection
 * set a timer each millisecond, and Bun warned of its negative delay (github.com/tulios/kafkajs/issues/1751).
 */
import type { Kafka as KafkaClient, Producer, SASLOptions } from 'kafkajs'
import { ContentRefused, ReceiverFailed, type Sink, type SinkKind } from '../sink.ts'
import { timeoutMilliseconds } from './post.ts'

const address = /^kafkas?:\/\/([^/]+)\/?$/

/** `kafkas://one:9093,two:9093`; null for anything else. */
export function brokersOf(url: string): string[] | null {
  const brokers = address.exec(url)?.[1]?.split(',') ?? []
  return brokers.length > 0 && brokers.every((broker) => /^([\w.-]+|\[[\da-f:]+\]):\d{1,5}$/i.test(broker))
    ? brokers
    : null
}

function saslOf({ config, credentials }: Sink): SASLOptions | undefined {
  const { username, password } = credentials
  if (username === undefined || password === undefined) return undefined
  return { mechanism: config.kafka?.mechanism ?? 'scram-sha-512', username, password }
}

/** What a broker says of a message that it will never take. */
const ofContent = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD', 'CORRUPT_MESSAGE'])

const typeOf = (error: unknown): string =>
  error instanceof Error ? ('type' in error ? String(error.type) : typeOf(error.cause)) : ''

async function clientOf(sink: Sink): Promise<KafkaClient> {
  const { Kafka, logLevel } = await import('kafkajs')
  const { ca_certificate: ca } = sink.config
  const { client_certificate: cert, client_key: key } = sink.credentials
  const sasl = saslOf(sink)
  return new Kafka({
    clientId: 'gatehouse',
    brokers: brokersOf(sink.url) ?? [],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 10_000,
    requestTimeout: timeoutMilliseconds,
    // Tries again are the sink's own, with their pauses.
    retry: { retries: 1, initialRetryTime: 200 },
    ...(sink.url.startsWith('kafkas:')
      ? {
          ssl: {
            ...(ca === undefined ? {} : { ca: [ca] }),
            ...(cert === undefined ? {} : { cert }),
            ...(key === undefined ? {} : { key }),
          },
        }
      : {}),
    ...(sasl === undefined ? {} : { sasl }),
  })
}

export const kafka: SinkKind = {
  formats: ['events', 'ocsf', 'records'],
  proves: false,
  schemes: { tls: 'kafkas', plain: 'kafka' },
  own: 'kafka',
  needs: [],
  most: { items: 2000, bytes: 800_000 },
  restMilliseconds: () => 1000,
  open(sink) {
    let connecting: Promise<Producer> | null = null
    const connect = async () => {
      const { CompressionTypes } = await import('kafkajs')
      const client = await clientOf(sink)
      const made = client.producer({ maxInFlightRequests: 1, allowAutoTopicCreation: false })
      await made.connect()
      return Object.assign(made, { compression: CompressionTypes.GZIP })
    }
    return {
      async send({ items }) {
        connecting ??= connect()
        try {
          const producer = await connecting
          await producer.send({
            topic: sink.config.kafka?.topic ?? '',
            acks: -1,
            timeout: timeoutMilliseconds,
            messages: items.map(({ id, at, chain, type, json }) => ({
              key: chain,
              value: json,
              timestamp: String(at),
              headers: { event_id: id, event_type: type },
            })),
          })
        } catch (error) {
          if (ofContent.has(typeOf(error))) throw new ContentRefused(`The broker: ${typeOf(error)}`)
          await this.close()
          throw new ReceiverFailed(`The broker: ${error instanceof Error ? error.message : String(error)}`, {
            cause: error,
          })
        }
      },
      async close() {
        const open = connecting
        connecting = null
        // A producer that never connected has nothing to close.
        await open?.then((producer) => producer.disconnect()).catch(() => undefined)
      },
    }
  },
}
