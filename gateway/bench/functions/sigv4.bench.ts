import { bench, do_not_optimize, run } from 'mitata'
import { noCaller } from '../../src/upstream/credentials/caller.ts'
import { compileAuthorize } from '../../src/upstream/credentials/credentials.ts'
import { fixtureContext } from '../../test/fixtures/pipeline.ts'

// Cost per request of a signature for Amazon Bedrock, with a body of 1 kB; limit: 8 us.
// node --expose-gc gateway/bench/functions/sigv4.bench.ts

const context = { ...fixtureContext(), clock: { ...fixtureContext().clock, now: () => Date.now() } }
const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const authorize = compileAuthorize({ aws: keys }, context)
const body = JSON.stringify({ messages: [{ role: 'user', content: [{ text: 'x'.repeat(960) }] }] })

bench('Signature Version 4, 1 kB', () => {
  const request = {
    origin: 'https://bedrock-runtime.us-east-1.amazonaws.com',
    method: 'POST',
    path: '/model/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse-stream',
    headers: { 'content-type': 'application/json', accept: '*/*', 'user-agent': 'bench' },
    body,
  }
  authorize?.apply(request, noCaller)
  return do_not_optimize(request.headers)
})

await run()
