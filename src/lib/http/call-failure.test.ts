import { expect, test } from 'bun:test'
import { callFailure } from './call-failure.ts'

const withCode = (code: string) => callFailure(Object.assign(new Error('secret'), { code }), 'late')

test("reports a failed call's cause without the text of the error", () => {
  expect(withCode('ConnectionRefused')).toBe('nothing listens there')
  expect(withCode('ENOTFOUND')).toBe('its name is unknown')
  expect(withCode('DEPTH_ZERO_SELF_SIGNED_CERT')).toBe('its certificate is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT)')
  expect(withCode('EODD')).toBe('the call failed (EODD)')
  expect(callFailure(new DOMException('', 'TimeoutError'), 'late')).toBe('late')
  expect(callFailure('secret', 'late')).toBe('the call failed')
})
