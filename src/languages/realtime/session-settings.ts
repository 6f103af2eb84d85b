/**
 * What the gateway checks and changes in the settings of a session. A provider that detects speech answers by itself
 * when a turn ends; then nothing could be reserved before. So the gateway always turns that off (`create_response`),
 * asks for those responses itself, and shows its client the setting that it chose.
 */
import { Failure } from '../../failure.ts'
import { isGiven, isObject, type JsonObject, textOf } from '../reading/json-value.ts'

const refused = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

/** Throws `invalid_parameter` for settings that cannot be governed. `path`: `session` or `response`. */
export function checkSettings(settings: Readonly<JsonObject>, path: string): void {
  const { type, tools } = settings
  if (path === 'session' && isGiven(type) && type !== 'realtime') {
    throw refused('session.type', 'session.type must be realtime: other sessions are not served here')
  }
  for (const [index, tool] of (Array.isArray(tools) ? tools : []).entries()) {
    if (isObject(tool) && (tool.type ?? 'function') === 'function') continue
    const message = `${path}.tools[${index}] is run by the provider, which cannot be governed: send functions only`
    throw refused(`${path}.tools[${index}]`, message)
  }
  const detection = detectionOf(settings)
  if (detection !== null && isGiven(detection.idle_timeout_ms)) {
    const message = 'idle_timeout_ms lets the provider answer by itself, which cannot be governed: leave it out'
    throw refused(`${path}.audio.input.turn_detection.idle_timeout_ms`, message)
  }
}

const inputOf = ({ audio }: Readonly<JsonObject>): JsonObject | null =>
  isObject(audio) && isObject(audio.input) ? audio.input : null

function detectionOf(settings: Readonly<JsonObject>): JsonObject | null {
  const detection = inputOf(settings)?.turn_detection
  return isObject(detection) ? detection : null
}

/** Whether the settings turn speech detection on or off, and whether turns are answered by themselves; null: neither. */
export function answersTurns(settings: Readonly<JsonObject>): boolean | null {
  const input = inputOf(settings)
  if (input === null || input.turn_detection === undefined) return null
  const detection = detectionOf(settings)
  return detection !== null && detection.create_response !== false
}

/** The settings with `create_response` set, where they have speech detection. */
export function withResponses(settings: JsonObject, createResponse: boolean): JsonObject {
  const { audio } = settings
  const detection = detectionOf(settings)
  if (detection === null || !isObject(audio) || !isObject(audio.input)) return settings
  const input = { ...audio.input, turn_detection: { ...detection, create_response: createResponse } }
  return { ...settings, audio: { ...audio, input } }
}

/** The update that turns the provider's own responses off; null where there are none. */
export function updateOfSetup(settings: Readonly<JsonObject>): JsonObject | null {
  const detection = detectionOf(settings)
  if (detection === null || detection.create_response === false) return null
  // What the provider fills in besides is left to it, except what makes it answer.
  const { idle_timeout_ms: _, ...others } = detection
  const input = { turn_detection: { ...others, create_response: false } }
  return { type: 'realtime', audio: { input } }
}

/** The model that writes transcripts of what is said; null where none does. */
export function transcriptionModel(settings: Readonly<JsonObject>): string | null {
  const transcription = inputOf(settings)?.transcription
  return isObject(transcription) ? (textOf(transcription.model) ?? '') : null
}
