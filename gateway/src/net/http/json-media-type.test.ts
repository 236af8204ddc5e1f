import { expect, it } from 'vitest'
import { readJsonMediaType } from './json-media-type.ts'

it.each([
  [undefined, 'absent'],
  ['application/json', 'json'],
  ['Application/JSON; charset=UTF-8', 'json'],
  ['application/json;charset="utf8"', 'json'],
  ['application/json; profile=x', 'json'],
  ['application/vnd.api+json', 'suffix'],
  ['application/json; charset=utf-7', 'charset'],
  ['application/json; charset=utf-8; charset=utf-16', 'charset'],
  ['application/json; profile="a;charset=utf-7"', 'charset'],
  ["application/json; charset*=utf-8''utf-7", 'charset'],
  ['application/json; charset=', 'charset'],
  ['application/vnd.api+json; charset=latin1', 'charset'],
  ['text/json', 'other'],
  ['application/jsonp', 'other'],
  ['application/json, text/plain', 'other'],
  [['application/json', 'text/plain'], 'other'],
])('reads %j as %s', (contentType, kind) => {
  expect(readJsonMediaType(contentType === undefined ? {} : { 'content-type': contentType })).toBe(kind)
})
