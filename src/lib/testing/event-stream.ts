/**
 * For tests: a reader of event streams written down from the WHATWG's text (HTML section 9.2.6), slowly and without
 * anything of the splitter: what a client makes of a stream's bytes.
 */
export interface ReadEvent {
  /** Empty where the event has no name. */
  readonly event: string
  readonly data: string
}

export function eventsIn(bytes: Uint8Array): ReadEvent[] {
  // "Streams must be decoded using the UTF-8 decode algorithm", which strips one byte order mark.
  const text = new TextDecoder('utf-8').decode(bytes)
  const lines = text.split(/\r\n|\n|\r/)
  // What follows the last line end is no line, and what was not dispatched by then is discarded.
  lines.pop()
  const events: ReadEvent[] = []
  let data = ''
  let event = ''
  for (const line of lines) {
    if (line === '') {
      if (data !== '') events.push({ event, data: data.replace(/\n$/, '') })
      data = ''
      event = ''
      continue
    }
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') event = value
    if (field === 'data') data += `${value}\n`
  }
  return events
}
