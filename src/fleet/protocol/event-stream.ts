/**
 * Reads the `data` of server-sent events (WHATWG HTML section 9.2) from a body, with one call of `onData` for each
 * event. Supports what our own control plane writes: other fields are ignored, lines end with LF or CRLF.
 */
const longestLine = 16 * 1024 * 1024

export async function readEventStream(
  body: ReadableStream<Uint8Array>,
  onData: (data: string) => void,
  onBytes: () => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  for await (const chunk of body) {
    onBytes()
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > longestLine) throw new RangeError('A line of the stream is too long')
    for (const ended of lines) {
      const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended
      if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line === '' && data.length > 0) {
        onData(data.join('\n'))
        data = []
      }
    }
  }
}
