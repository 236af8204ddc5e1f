import { expect, it } from 'vitest'
import { formatHostPort, parseHostPort } from './host-port.ts'

it.each([
  ['localhost:1', 'localhost', 1],
  ['127.0.0.1:15000', '127.0.0.1', 15_000],
  ['[::]:15020', '::', 15_020],
  ['[::ffff:10.0.0.1]:80', '::ffff:10.0.0.1', 80],
  ['my_service.example-1.com:65535', 'my_service.example-1.com', 65_535],
])('takes %s apart and puts it together again', (text, host, port) => {
  expect(parseHostPort(text)).toEqual({ host, port })
  expect(formatHostPort({ host, port })).toBe(text)
})

it.each([
  'localhost',
  ':80',
  '::1:80',
  '[::1]',
  '[]:80',
  '[:::]:80',
  'a:65536',
  'a:-1',
  'a:1e3',
  'a b:1',
  'http://a:1',
  'a:80/',
])('refuses "%s"', (text) => {
  expect(parseHostPort(text)).toBeUndefined()
})
