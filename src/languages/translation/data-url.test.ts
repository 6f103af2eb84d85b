import { expect, test } from 'bun:test'
import { parseDataUrl } from './data-url.ts'

test('a data URL’s media type is read without its parameters', () => {
  for (const head of ['image/png', 'Image/PNG;charset=x', 'image/png ;a=b;c=d'])
    expect(parseDataUrl(`data:${head};base64,AAAA`)).toEqual({ mediaType: 'image/png', base64: 'AAAA' })
})
