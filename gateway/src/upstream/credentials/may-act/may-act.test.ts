import { describe, expect, it } from 'vitest'
import { mayAct } from './may-act.ts'

function token(claims: unknown): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`
}

const actor = token({ sub: 'agent', iss: 'https://idp.example.com', level: { n: 1 } })

describe('mayAct', () => {
  it.each<[string, unknown, boolean]>([
    ['a value of the actor', { sub: 'agent' }, true],
    ['all values of the actor', { sub: 'agent', iss: 'https://idp.example.com' }, true],
    ['one value of a list', { sub: ['other', 'agent'] }, true],
    ['an equal object', { level: { n: 1 } }, true],
    ['another value', { sub: 'other' }, false],
    ['one of two values', { sub: 'agent', iss: 'https://other.example.com' }, false],
    ['a claim that the actor lacks', { azp: 'agent' }, false],
    ['an inherited name', { toString: 'agent' }, false],
    ['an empty list', { sub: [] }, false],
    ['no values', {}, false],
    ['a text', 'agent', false],
    ['a list', [{ sub: 'agent' }], false],
    ['null', null, false],
  ])('decides on %s', (_, claim, isPermitted) => {
    expect(mayAct(token({ may_act: claim }), actor)).toBe(isPermitted)
  })

  it.each([
    ['a subject without the claim', token({ sub: 'user' }), actor],
    ['a subject that is no JWT', 'opaque', actor],
    ['a subject with an unreadable payload', 'e30.e30x!.sig', actor],
    ['an actor that is no JWT', token({ may_act: { sub: 'agent' } }), 'opaque'],
    ['an actor that is encrypted', token({ may_act: { sub: 'agent' } }), `${actor}.a.b`],
    ['an actor whose payload is a list', token({ may_act: { 0: 'agent' } }), token(['agent'])],
  ])('refuses %s', (_, subject, acting) => {
    expect(mayAct(subject, acting)).toBe(false)
  })
})
