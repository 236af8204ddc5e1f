import { formatBytes } from '../../../format/number.ts'
import type { Image } from './conversation.ts'

/** Limits of a prompt: providers refuse larger images, and the gateway larger bodies. */
const maxImages = 8
const maxImageBytes = 5_000_000
export const imageTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

export type ReadImages = { readonly images: readonly Image[]; readonly problems: readonly string[] }

/** Reads image files as data URLs. Files that are no images or too large are problems. */
export async function readImages(files: readonly File[], present: number): Promise<ReadImages> {
  const images: Image[] = []
  const problems: string[] = []
  for (const file of files) {
    if (!imageTypes.some((type) => type === file.type))
      problems.push(`${file.name} is not an image: attach PNG, JPEG, GIF or WebP.`)
    else if (file.size > maxImageBytes)
      problems.push(`${file.name} has ${formatBytes(file.size)}: at most ${formatBytes(maxImageBytes)}.`)
    else if (present + images.length >= maxImages)
      problems.push(`${file.name} was left out: at most ${maxImages} images in a prompt.`)
    else images.push({ name: file.name, bytes: file.size, dataUrl: await dataUrlOf(file) })
  }
  return { images, problems }
}

function dataUrlOf(file: File): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const reader = new FileReader()
  reader.onload = () => resolve(String(reader.result))
  reader.onerror = () => reject(reader.error)
  reader.readAsDataURL(file)
  return promise
}
