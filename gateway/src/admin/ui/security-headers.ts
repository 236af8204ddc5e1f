import type { Headers } from '../../net/http/headers.ts'

/** Headers of every reply of the console. */
export const resourceHeaders: Readonly<Headers> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

/** Features of browsers that the console does not use. */
const disabledFeatures = [
  'accelerometer',
  'autoplay',
  'camera',
  'display-capture',
  'encrypted-media',
  'geolocation',
  'gyroscope',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'screen-wake-lock',
  'usb',
  'xr-spatial-tracking',
]

const permissions = disabledFeatures.map((feature) => `${feature}=()`).join(', ')

/**
 * Headers of a page. The policy has no `unsafe-inline`: scripts are files of the console, and style elements,
 * which the editor and the dialogs create, carry the nonce.
 */
export function pageHeaders(nonce: string): Headers {
  return {
    ...resourceHeaders,
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "img-src 'self' data: blob:",
      "font-src 'self'",
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "manifest-src 'self'",
      "worker-src 'self'",
    ].join('; '),
    'permissions-policy': permissions,
    'cross-origin-opener-policy': 'same-origin',
    'x-frame-options': 'DENY',
  }
}
