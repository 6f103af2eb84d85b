/** A sink as delivery knows it, and what every kind of receiver has to do. */
import type { Fetch } from '../providers/provider.ts'
import type { SinkConfig, SinkCredentials, SinkFormat, SinkKindName } from './sink-resource.ts'

/** A sink with its credentials open. */
export interface Sink {
  id: string
  name: string
  kind: SinkKindName
  url: string
  format: SinkFormat
  filter: string | null
  config: SinkConfig
  credentials: SinkCredentials
  version: number
}

/** What a receiver gets as one message: a record, or an event. */
export interface Item {
  /** Of the event, by which a receiver knows one that comes twice. */
  id: string
  /** Milliseconds since the epoch. */
  at: number
  /** Of the record. */
  position: number
  chain: string
  json: string
  /** What kinds with columns or attributes of their own show. */
  type: string
  verdict: string
  /** Of the caller's request, where there is one. */
  fields: Readonly<Record<string, string | number | null>>
}

/** What is sent at once. Positions name a parcel: one that is sent again has the same. */
export interface Parcel {
  /** Of its first record. */
  first: number
  /** After its last record. */
  next: number
  items: readonly Item[]
  /** What proves the items, as JSON; null for formats that cannot be proved. */
  proof: string | null
}

/** The receiver refuses what is in the parcel, whenever it is sent. */
export class ContentRefused extends Error {}

/** The receiver cannot take the parcel now. */
export class ReceiverFailed extends Error {
  /** What it asks for, in milliseconds. */
  readonly wait: number | null

  constructor(message: string, { wait = null, cause }: { wait?: number | null; cause?: unknown } = {}) {
    super(message, { cause })
    this.wait = wait
  }
}

/** A connection to a receiver. */
export interface Receiver {
  /** Resolves once the receiver has the parcel. Rejects with `ContentRefused`, or with what else went wrong. */
  send(parcel: Parcel, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface ReceiverTools {
  fetch: Fetch
  now(): number
}

export interface SinkKind {
  /** The formats it can be sent; the first is what a sink has that names none. */
  formats: readonly [SinkFormat, ...SinkFormat[]]
  /** Whether records in it can be proved: each parcel goes with its proof, as an object beside it or a line behind it. */
  proves: 'object' | 'line' | false
  /** The schemes of its address; the last ones are without TLS. */
  schemes: { tls: string; plain: string }
  /** The part of the record that is its own. */
  own?: keyof SinkConfig
  /** The credentials that it cannot do without. */
  needs: readonly (keyof SinkCredentials)[]
  /** The most of one parcel. */
  most: { items: number; bytes: number }
  /** How long records wait for a full parcel, in milliseconds. */
  restMilliseconds(config: SinkConfig): number
  open(sink: Sink, tools: ReceiverTools): Receiver
}
