import { expect, it } from 'vitest'
import { geminiCallIn, geminiModelsIn } from './gemini-path.ts'

it.each([
  ['/v1beta/models/a:embedContent', 'embed_content', 'a'],
  ['/v1beta/models/a%2Fb:batchEmbedContents', 'batch_embed_contents', 'a/b'],
  ['/x/v1/tunedModels/t:streamGenerateContent', 'generate_content', 'tunedModels/t'],
])('the path %s is a call', (path, endpoint, model) => {
  expect(geminiCallIn(path)).toMatchObject({ endpoint, model })
})

it.each(['/v1beta/models/a:embedContents', '/v1beta/models/%zz:embedContent', '/v1beta/models:embedContent'])(
  'the path %s is no call',
  (path) => {
    expect(geminiCallIn(path)).toBeUndefined()
  },
)

it.each([
  ['/v1beta/models', undefined],
  ['/team/v1alpha/models/gemini-2.5-pro', 'gemini-2.5-pro'],
  ['/v1beta1/models/org%2Fname', 'org/name'],
  ['/v1beta/models/amazon.nova-pro-v1:0', 'amazon.nova-pro-v1:0'],
])('the path %s is one of the list of models', (path, id) => {
  expect(geminiModelsIn(path)).toEqual({ id })
})

it.each(['/v1/models', '/v1beta/models/veo:predictLongRunning', '/v1beta/files', '/v1beta/models/%zz'])(
  'the path %s is none of the list',
  (path) => {
    expect(geminiModelsIn(path)).toBeUndefined()
  },
)
