import type { GetPromptResult, PromptArgument } from '@modelcontextprotocol/sdk/types.js'
import { image, text } from './content.ts'

type ConformancePrompt = {
  description: string
  arguments?: PromptArgument[]
  get(args: Record<string, string>): GetPromptResult['messages'][number]['content'][]
}

/** The prompts the official suite asks for, by name; every message is the user's. */
export const prompts: Record<string, ConformancePrompt> = {
  test_simple_prompt: {
    description: 'A prompt without arguments.',
    get: () => [text('This is a simple prompt for testing.')],
  },
  test_prompt_with_arguments: {
    description: 'A prompt with two arguments.',
    arguments: [
      { name: 'arg1', description: 'First test argument', required: true },
      { name: 'arg2', description: 'Second test argument', required: true },
    ],
    get: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    description: 'A prompt that holds a resource.',
    arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
    get: ({ resourceUri = '' }) => [
      {
        type: 'resource',
        resource: {
          uri: resourceUri,
          mimeType: 'text/plain',
          text: 'Embedded resource content for testing.',
        },
      },
      text('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: {
    description: 'A prompt that holds an image.',
    get: () => [image(), text('Please analyze the image above.')],
  },
}
