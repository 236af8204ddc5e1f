import { describe, expect, it } from 'vitest'
import { printable } from './printable.ts'

describe('a message about a configuration', () => {
  it.each([
    ['got "http://u:s3cret@h:99999/"', 'got "http://***@h:99999/"'],
    ['got "http://u:s3@cret@h:99999/"', 'got "http://***@h:99999/"'],
    ['got "http://u:s3/cret@h:99999/"', 'got "http://***@h:99999/"'],
    ['got "u:s3cret@h:1"', 'got "***@h:1"'],
    ['got "http://h:99999/mcp?key=s3cret"', 'got "http://h:99999/mcp?***"'],
    ['got "-----BEGIN PRIVATE KEY-----\ns3cret"', 'got "-----BEGIN…'],
  ])('%j has no credentials', (message, shown) => {
    expect(printable(message)).toBe(shown)
  })

  it.each([
    'expected an address that starts with http:// or https://, got "ftp"',
    'llm.models has no entry named "claude@2024"',
    'got "http://h:99999/mcp", and a@b.example',
  ])('%j is not changed', (message) => {
    expect(printable(message)).toBe(message)
  })
})
