import type { ReadResourceResult, Resource, ResourceTemplate } from '@modelcontextprotocol/sdk/types.js'
import { redPixel } from './content.ts'

/** The resources the official suite reads. */
export const resources: Resource[] = [
  { uri: 'test://static-text', name: 'Static text', description: 'A text.', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'Static image', description: 'An image.', mimeType: 'image/png' },
  {
    uri: 'test://watched-resource',
    name: 'Watched resource',
    description: 'Can be subscribed to.',
    mimeType: 'text/plain',
  },
]

export const templates: ResourceTemplate[] = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'Template',
    description: 'Data for an id.',
    mimeType: 'application/json',
  },
]

/** Content of a URI; undefined if the URI has none. */
export function read(uri: string): ReadResourceResult['contents'][number] | undefined {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` }
    return { uri, mimeType: 'application/json', text: JSON.stringify(data) }
  }
  switch (uri) {
    case 'test://static-text':
      return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
    case 'test://static-binary':
      return { uri, mimeType: 'image/png', blob: redPixel }
    case 'test://watched-resource':
      return { uri, mimeType: 'text/plain', text: 'Watched.' }
    default:
      return undefined
  }
}
