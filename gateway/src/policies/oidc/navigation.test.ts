import { describe, expect, it } from 'vitest'
import { isNavigation } from './navigation.ts'

const html = 'text/html,application/xhtml+xml,*/*;q=0.8'

describe('a navigation', () => {
  it.each([
    ['of a browser', 'GET', { accept: html, 'sec-fetch-mode': 'navigate' }, true],
    ['of a browser without Fetch Metadata', 'GET', { accept: html }, true],
    ['by HEAD', 'HEAD', { accept: html }, true],
    ['by a form', 'POST', { accept: html, 'sec-fetch-mode': 'navigate' }, false],
    ['of a script', 'GET', { accept: html, 'sec-fetch-mode': 'cors' }, false],
    ['of a script without credentials mode', 'GET', { accept: '*/*', 'sec-fetch-mode': 'no-cors' }, false],
    ['of a WebSocket', 'GET', { accept: html, upgrade: 'websocket' }, false],
    ['of a library', 'GET', { accept: html, 'x-requested-with': 'XMLHttpRequest' }, false],
    ['of curl', 'GET', { accept: '*/*' }, false],
    ['without accept', 'GET', {}, false],
    ['of an API client', 'GET', { accept: 'application/json' }, false],
    ['of another type with the name inside', 'GET', { accept: 'application/x-text/htmlish' }, false],
  ])('%s', (_, method, headers, expected) => {
    expect(isNavigation({ method, headers: headers as Record<string, string> })).toBe(expected)
  })
})
