/** A session as those see it who handle its events. */
import type { Failure } from '../../failure.ts'
import type { JsonObject } from '../../languages/reading/json-value.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import type { Ending } from '../websocket/endings.ts'
import type { Guards } from './admission.ts'
import type { Speech } from './speech.ts'
import type { SessionFacts } from './stages.ts'
import type { Turn, TurnSession } from './turn.ts'
import type { Turns } from './turns.ts'

/** A request of a session that the stages govern. */
export interface SessionArrival {
  request: Request
  requestId: string
  body: Uint8Array
}

export interface GovernSession {
  turn(arrival: SessionArrival, session: SessionFacts, turn: Turn): Promise<Response>
  event(arrival: SessionArrival, session: SessionFacts, pass: (body: JsonObject) => void): Promise<Response>
  speech(arrival: SessionArrival, session: SessionFacts, speech: Speech): Promise<Response>
}

export interface LiveSession extends TurnSession {
  readonly gateway: Gateway
  /** The handshake. */
  readonly exchange: Exchange
  readonly govern: GovernSession
  readonly facts: SessionFacts
  readonly turns: Turns
  readonly transcripts: Reading
  /** Ids of items that the client has put into the conversation, in writing or as sound. */
  readonly ownItems: OwnItems
  /** Aborted when the client has gone. */
  readonly left: AbortController
  /** Seconds of sound that were sent and not taken into the conversation. */
  heardSeconds: number
  /** The settings of the session as the provider stated them last. */
  settings: JsonObject
  /** The client wants each turn of speech to be answered by itself. */
  answersTurns: boolean
  readonly isEnding: boolean
  /** The model that writes transcripts of what is said; null where none does. */
  readonly transcriptionModel: string | null
  /** What the policies ask for now; null if the token is not valid any more, which ends the session. */
  guards(): Guards | null
  /** Makes the request of an event or a response. */
  arrivalOf(body: JsonObject): SessionArrival
  /** Sends an event to the client. */
  tell(text: string): Promise<void> | void
  /** Tells the client that an event of its was refused. */
  refuse(failure: Failure, eventId: unknown): void
  tellError(event: JsonObject, eventId: unknown): void
  /** Tells a failure that ends the session. */
  fail(failure: Failure, ending?: Ending, waits?: boolean): void
  /** Refuses what comes from now on, and closes: at once, but for the last frames, or when no response runs. */
  endWith(ending: Ending, waits?: boolean): void
  /** A provider that breaks the protocol: what it says belongs to no request that was admitted. */
  breach(what: string): void
  /** Pauses whoever sends faster than the other side reads. */
  balance(): void
}

/** What was said, in writing (`transcripts.ts`). */
export interface Reading {
  /** Something was said that must be read first. Resolves with whether it may stay. */
  await(itemId: string): Promise<boolean>
  /** Resolves when everything that was said is read. */
  read(): Promise<void>
  /** Sound entered the conversation, whose transcript the provider begins to write. */
  begin(itemId: string): void
  /** The last event of a transcript came: its cost is known. */
  ended(event: JsonObject): void
  /** The provider has written a transcript, which `event` tells. */
  written(event: JsonObject, text: string): Promise<void>
  /** There is no transcript. */
  unreadable(itemId: string): void
}

export interface OwnItems {
  has(id: unknown): boolean
  add(id: string): void
}
