/** The simulator's speech, a tone as long as its text, and its transcriptions, which name the file and its size. */
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { boundaryOf, formParts } from '../../lib/http/multipart.ts'
import type { UpstreamCall } from '../provider.ts'
import {
  contentText,
  countWords,
  eventStream,
  fingerprint,
  namedFrame,
  refusal,
  type SimulatedModel,
  say,
  wordsOf,
} from './text.ts'

const sampleRate = 8000
const samplesPerWord = 480
const mostWords = 1000
const pitch = 440
const bytesPerDelta = 24 * 1024

/** Always a WAV file, whatever format is requested: its Content-Type says so. */
export function answerSpeech(call: UpstreamCall, body: JsonObject): Response {
  const text = contentText(body.input)
  const audio = waveFile(Math.min(Math.max(1, wordsOf(text).length), mostWords) * samplesPerWord)
  if (!call.stream) return new Response(audio, { headers: { 'content-type': 'audio/wav' } })
  const input = countWords([text, contentText(body.instructions)])
  return eventStream(speechFrames(audio, input))
}

function* speechFrames(audio: Uint8Array, inputTokens: number): Generator<string> {
  for (let at = 0; at < audio.length; at += bytesPerDelta) {
    const audioText = Buffer.from(audio.subarray(at, at + bytesPerDelta)).toString('base64')
    yield namedFrame('speech.audio.delta', { audio: audioText })
  }
  const output = Math.ceil(audio.length / samplesPerWord)
  const usage = { input_tokens: inputTokens, output_tokens: output, total_tokens: inputTokens + output }
  yield namedFrame('speech.audio.done', { usage })
}

/** 16-bit mono PCM in a RIFF file that names its maker (Multimedia Programming Interface 1.0: WAVE, LIST INFO ISFT). */
function waveFile(samples: number): Uint8Array<ArrayBuffer> {
  const maker = Buffer.from(`${fingerprint}\0`)
  const info = chunk('LIST', Buffer.concat([Buffer.from('INFO'), chunk('ISFT', maker)]))
  const format = Buffer.alloc(16)
  format.writeUInt16LE(1, 0)
  format.writeUInt16LE(1, 2)
  format.writeUInt32LE(sampleRate, 4)
  format.writeUInt32LE(2 * sampleRate, 8)
  format.writeUInt16LE(2, 12)
  format.writeUInt16LE(16, 14)
  const sound = Buffer.alloc(2 * samples)
  for (let index = 0; index < samples; index++) {
    sound.writeInt16LE(Math.round(8000 * Math.sin((2 * Math.PI * pitch * index) / sampleRate)), 2 * index)
  }
  const parts = Buffer.concat([Buffer.from('WAVE'), chunk('fmt ', format), info, chunk('data', sound)])
  return new Uint8Array(chunk('RIFF', parts))
}

/** A RIFF chunk: its name, its length, its content, to an even length. */
function chunk(name: string, content: Uint8Array): Buffer {
  const head = Buffer.alloc(8)
  head.write(name, 'latin1')
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
}

const bytesPerSecond = 16_000
const bytesPerToken = 1600

export function answerTranscription(call: UpstreamCall, model: SimulatedModel): Response {
  const form = formOf(call)
  if (form === null) return refusal(400, 'invalid_file', 'The form has no file')
  const { filename, bytes, fields } = form
  const { words } = say({
    model,
    lastText: `Simulated transcript of ${filename}, ${bytes} bytes.`,
    texts: [],
    limit: 12,
  })
  const text = words.join('')
  const input = Math.ceil(bytes / bytesPerToken) + countWords([fields.get('prompt') ?? ''])
  const usage = {
    type: 'tokens',
    input_tokens: input,
    output_tokens: words.length,
    total_tokens: input + words.length,
    input_token_details: { audio_tokens: Math.ceil(bytes / bytesPerToken), text_tokens: 0 },
  }
  if (call.stream) return eventStream(transcriptFrames(words, usage))
  const seconds = Math.ceil(bytes / bytesPerSecond)
  const end = new Date(1000 * seconds).toISOString().slice(11, 23)
  switch (fields.get('response_format')) {
    case 'text':
      return plain(`${text}\n`, 'text/plain')
    case 'srt':
      return plain(`1\n00:00:00,000 --> ${end.replace('.', ',')}\n${text}\n\n`, 'application/x-subrip')
    case 'vtt':
      return plain(`WEBVTT\n\n00:00:00.000 --> ${end}\n${text}\n\n`, 'text/vtt')
    case 'verbose_json':
      return Response.json(verbose(text, seconds))
    default:
      return Response.json({ text, usage, system_fingerprint: fingerprint })
  }
}

function* transcriptFrames(words: readonly string[], usage: object): Generator<string> {
  for (const delta of words) yield namedFrame('transcript.text.delta', { delta })
  yield namedFrame('transcript.text.done', { text: words.join(''), usage })
}

const verbose = (text: string, seconds: number) => ({
  task: 'transcribe',
  language: 'english',
  duration: seconds,
  text,
  segments: [{ id: 0, start: 0, end: seconds, text }],
  usage: { type: 'duration', seconds },
  system_fingerprint: fingerprint,
})

const plain = (text: string, type: string): Response =>
  new Response(text, { headers: { 'content-type': `${type}; charset=utf-8` } })

function formOf({ body, contentType }: UpstreamCall) {
  const boundary = boundaryOf(contentType)
  if (boundary === null) return null
  const decoder = new TextDecoder()
  const fields = new Map<string, string>()
  let file: { filename: string; bytes: number } | null = null
  for (const { name, filename, span } of formParts(body, boundary).parts) {
    if (filename === null) fields.set(name, decoder.decode(body.subarray(...span)))
    else file = { filename, bytes: span[1] - span[0] }
  }
  return isObject(file) ? { ...file, fields } : null
}
