/** Settings that are addresses: to listen at, of servers, of databases. */
import { isHostName } from '../http/host-name.ts'
import { text } from './setting.ts'

/** HOST:PORT to listen at. */
export const address = text
  .refine(
    (written) => /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):\d{1,5}$/.test(written),
    'Write HOST:PORT; port 0 picks a free one',
  )
  .refine((written) => Number(written.slice(written.lastIndexOf(':') + 1)) <= 65535, 'A port is at most 65535')

const parseUrl = (written: string): URL | null => (URL.canParse(written) ? new URL(written) : null)

const namesHost = (written: string): boolean => isHostName(parseUrl(written)?.hostname ?? '')
const noHost = 'Name a host, of letters, digits and - _ .'

export const httpUrl = text
  .refine(
    (written) => /^https?:$/.test(parseUrl(written)?.protocol ?? ''),
    'Write an address that begins with http:// or https://',
  )
  .refine(
    (written) => parseUrl(written)?.username === '' && parseUrl(written)?.password === '',
    'Leave user and password out',
  )
  .refine(namesHost, noHost)

/** A scheme, a host and a port, as `URL.origin` writes them. */
export const origin = httpUrl
  .refine((written) => parseUrl(written)?.pathname === '/', 'An origin has no path: https://gateway.example.com')
  .refine((written) => !/[?#]/.test(written), 'An origin has no query or fragment')
  .transform((written) => parseUrl(written)?.origin ?? written)

export const databaseUrl = text
  .refine(
    (written) => /^(libsql|https?):$/.test(parseUrl(written)?.protocol ?? ''),
    'Write an address that begins with libsql://, https:// or http://',
  )
  .refine(
    (written) => !/[?#@]/.test(written),
    'Leave credentials and parameters out: the token is a setting of its own',
  )
  .refine(namesHost, noHost)
