"""A few training steps of ResNet-18, batch 8, on the CPU; prints the losses and the median step time."""
import statistics
import time

import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.resnet18()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images = torch.randn(8, 3, 224, 224)
labels = torch.randint(0, 1000, (8,))
seconds = []
for _ in range(10):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    seconds.append(time.perf_counter() - begin)
    print("loss", repr(loss.item()))
print("step", statistics.median(seconds[2:]))
