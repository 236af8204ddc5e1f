import { expect, it } from 'vitest'
import { requestsWithModel } from './embed-requests.ts'

it('every request of a batch has the model of the path', () => {
  const requests = [{ model: 'models/other', content: {} }, { content: {} }]
  expect(JSON.parse(requestsWithModel({ requests }, 'real') ?? '')).toEqual([
    { model: 'models/real', content: {} },
    { model: 'models/real', content: {} },
  ])
  expect(requestsWithModel({ requests: [{ model: 'tunedModels/t' }] }, 'tunedModels/t')).toBeUndefined()
  expect(requestsWithModel({ requests: [{ model: 'models/real' }] }, 'real')).toBeUndefined()
  expect(requestsWithModel({ contents: [] }, 'real')).toBeUndefined()
})
